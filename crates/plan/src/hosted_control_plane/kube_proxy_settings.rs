//! What users can set on kube-proxy: fields of its configuration file, by the names of its flags.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::flags::accepted;
use super::program::KUBE_PROXY;
use super::setting::Type;

/// Flags that count beside a file.
const FLAGS: [&str; 4] = ["log-flush-frequency", "logging-format", "v", "vmodule"];

/// The name of a flag, the paths of its fields, and their type.
const SETTINGS: [(&str, &[&str], Type); 35] = [
    ("bind-address", &["/bindAddress"], Type::Text),
    ("bind-address-hard-fail", &["/bindAddressHardFail"], Type::Switch),
    ("config-sync-period", &["/configSyncPeriod"], Type::Duration),
    ("conntrack-max-per-core", &["/conntrack/maxPerCore"], Type::Whole),
    ("conntrack-min", &["/conntrack/min"], Type::Whole),
    ("conntrack-tcp-be-liberal", &["/conntrack/tcpBeLiberal"], Type::Switch),
    ("conntrack-tcp-timeout-close-wait", &["/conntrack/tcpCloseWaitTimeout"], Type::Duration),
    ("conntrack-tcp-timeout-established", &["/conntrack/tcpEstablishedTimeout"], Type::Duration),
    ("conntrack-udp-timeout", &["/conntrack/udpTimeout"], Type::Duration),
    ("conntrack-udp-timeout-stream", &["/conntrack/udpStreamTimeout"], Type::Duration),
    ("detect-local-mode", &["/detectLocalMode"], Type::Text),
    ("feature-gates", &["/featureGates"], Type::Features),
    ("iptables-localhost-nodeports", &["/iptables/localhostNodePorts"], Type::Switch),
    ("iptables-masquerade-bit", &["/iptables/masqueradeBit"], Type::Whole),
    ("iptables-min-sync-period", &["/iptables/minSyncPeriod"], Type::Duration),
    ("iptables-sync-period", &["/iptables/syncPeriod"], Type::Duration),
    ("ipvs-exclude-cidrs", &["/ipvs/excludeCIDRs"], Type::List),
    ("ipvs-min-sync-period", &["/ipvs/minSyncPeriod"], Type::Duration),
    ("ipvs-scheduler", &["/ipvs/scheduler"], Type::Text),
    ("ipvs-strict-arp", &["/ipvs/strictARP"], Type::Switch),
    ("ipvs-sync-period", &["/ipvs/syncPeriod"], Type::Duration),
    ("ipvs-tcp-timeout", &["/ipvs/tcpTimeout"], Type::Duration),
    ("ipvs-tcpfin-timeout", &["/ipvs/tcpFinTimeout"], Type::Duration),
    ("ipvs-udp-timeout", &["/ipvs/udpTimeout"], Type::Duration),
    ("kube-api-burst", &["/clientConnection/burst"], Type::Whole),
    ("kube-api-content-type", &["/clientConnection/contentType"], Type::Text),
    ("kube-api-qps", &["/clientConnection/qps"], Type::Number),
    // Each mode has its own.
    ("masquerade-all", &["/iptables/masqueradeAll", "/nftables/masqueradeAll"], Type::Switch),
    ("nodeport-addresses", &["/nodePortAddresses"], Type::List),
    ("oom-score-adj", &["/oomScoreAdj"], Type::Whole),
    ("pod-bridge-interface", &["/detectLocal/bridgeInterface"], Type::Text),
    ("pod-interface-name-prefix", &["/detectLocal/interfaceNamePrefix"], Type::Text),
    ("profiling", &["/enableProfiling"], Type::Switch),
    // Those of Linux.
    ("proxy-mode", &["/mode"], Type::OneOf(&["iptables", "ipvs", "nftables"])),
    ("show-hidden-metrics-for-version", &["/showHiddenMetricsForVersion"], Type::Text),
];

/// Something that users set.
#[derive(Debug, PartialEq)]
pub(super) enum Setting {
    Flag(String),
    Fields(&'static [&'static str], Value),
}

/// A setting, or why it cannot be set.
pub(super) fn setting(name: &str, text: &str) -> Result<Setting, String> {
    let (name, text) = accepted(&KUBE_PROXY, name, text)?;
    if FLAGS.contains(&name.as_str()) {
        return Ok(Setting::Flag(format!("--{name}={text}")));
    }
    let Some((_, paths, of)) = SETTINGS.iter().find(|(known, ..)| *known == name) else {
        return Err("kube-proxy's configuration file has no such setting".to_owned());
    };
    Ok(Setting::Fields(paths, of.read(&text)?))
}

/// The flags and the fields of the file that users give. What they must not set is left out; `unsupported` tells them.
pub(super) fn given(arguments: &BTreeMap<String, String>) -> (Vec<String>, Vec<(&'static str, Value)>) {
    let (mut flags, mut fields) = (Vec::new(), Vec::new());
    for (name, text) in arguments {
        match setting(name, text) {
            Ok(Setting::Flag(flag)) => flags.push(flag),
            Ok(Setting::Fields(paths, value)) => {
                fields.extend(paths.iter().map(|path| (*path, value.clone())));
            }
            Err(_) => {}
        }
    }
    (flags, fields)
}

/// Writes a field, whose path has one or two parts.
pub(super) fn write(configuration: &mut Value, path: &str, value: &Value) {
    let mut target = configuration;
    for part in path.split('/').skip(1) {
        if !target.is_object() {
            *target = json!({});
        }
        target = &mut target[part];
    }
    *target = value.clone();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_fields_of_the_file() {
        let given = given(
            &[
                ("proxy-mode", "ipvs"),
                ("ipvs_strict_arp", "true"),
                ("masquerade-all", "true"),
                ("conntrack-min", "7"),
                ("feature-gates", "A=true, B=false"),
                ("v", "4"),
                ("cluster-cidr", "10.0.0.0/8"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        );
        let mut file = json!({"mode": "nftables", "conntrack": {"min": 0, "maxPerCore": 0}});
        for (path, value) in &given.1 {
            write(&mut file, path, value);
        }
        let expected = json!({
            "mode": "ipvs",
            "conntrack": {"min": 7, "maxPerCore": 0},
            "ipvs": {"strictARP": true},
            "iptables": {"masqueradeAll": true},
            "nftables": {"masqueradeAll": true},
            "featureGates": {"A": true, "B": false},
        });
        assert_eq!((given.0, file), (vec!["--v=4".to_owned()], expected));
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for (name, text, expected) in [
            ("proxy-mode", "kernelspace", "it is none of iptables, ipvs, nftables"),
            ("conntrack-min", "many", "it is no whole number"),
            ("feature-gates", "A", "it is no list of features, such as A=true,B=false"),
            ("boot-id-file", "/x", "kube-proxy's configuration file has no such setting"),
        ] {
            assert_eq!(setting(name, text), Err(expected.to_owned()), "{name}={text}");
        }
        for name in ["cluster-cidr", "config", "healthz-bind-address", "hostname-override", "master"] {
            assert!(setting(name, "x").is_err(), "{name}");
        }
    }
}
