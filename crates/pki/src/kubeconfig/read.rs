//! Reads kubeconfigs that others wrote: what leads to one API server, and nothing else.
//!
//! The text comes from a Secret in a namespace, and its author must not act in the place of whoever reads it. So only
//! data in the text itself counts: no file is opened, no program is started, no other host is called, and a server that
//! cannot be checked is not talked to. A field that would do anything else is refused by name. Fields that are empty and
//! those that change nothing here (preferences, extensions, a namespace) are passed over, and so is everything that the
//! current context does not use: other tools write both.
//!
//! Errors name fields and never repeat what is in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Map, Value};

use super::{Credentials, Kubeconfig, Trust};
use crate::{Error, KeyPairPem, PrivateKeyPem, SecretText};

/// A bundle of a dozen authorities fits.
const LIMIT: usize = 64 << 10;

const NOT_USED: &str = "is set; only server, certificate-authority-data, tls-server-name, client-certificate-data, \
                        client-key-data and token are used";

pub(super) fn read(text: &str) -> Result<Kubeconfig, Error> {
    if text.len() > LIMIT {
        return Err(unusable("the kubeconfig", "is larger than 64 KiB"));
    }
    // The error's own text quotes the file: only its line is kept.
    let document: Value = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        unusable(&format!("line {line}"), "cannot be parsed")
    })?;
    let document = Fields::of(&document, "")?;
    let known = ["apiVersion", "kind", "clusters", "users", "contexts", "current-context"];
    document.only(&known, &["preferences", "extensions"])?;
    let current = document.required("current-context")?;

    let context = document.named("contexts", "context", current)?;
    context.only(&["cluster", "user"], &["namespace", "extensions"])?;
    let (cluster, user) = (context.required("cluster")?, context.required("user")?);

    let fields = document.named("clusters", "cluster", cluster)?;
    let known = ["server", "certificate-authority-data", "tls-server-name"];
    fields.only(&known, &["disable-compression", "extensions"])?;
    let server = fields.required("server")?;
    if !is_https(server) {
        return Err(fields.wrong("server", "must be an https address"));
    }
    let trust = match fields.decoded("certificate-authority-data")? {
        Some(pem) if is_certificates(&pem) => Trust::Embedded(pem),
        Some(_) => return Err(fields.wrong("certificate-authority-data", "holds no certificates in PEM")),
        None => Trust::System,
    };
    let tls_server_name = fields.text("tls-server-name")?;
    if tls_server_name.is_some_and(|name| !name.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(fields.wrong("tls-server-name", "must be a name"));
    }

    let credentials = credentials(&document.named("users", "user", user)?)?;
    Ok(Kubeconfig {
        cluster: cluster.to_owned(),
        user: user.to_owned(),
        server: server.to_owned(),
        trust,
        tls_server_name: tls_server_name.map(str::to_owned),
        credentials,
        namespace: context.text("namespace")?.map(str::to_owned),
    })
}

/// Of a certificate and a token the certificate counts: its key stays here.
fn credentials(user: &Fields<'_>) -> Result<Credentials, Error> {
    let (certificate, key) = ("client-certificate-data", "client-key-data");
    user.only(&[certificate, key, "token"], &["extensions"])?;
    match (user.decoded(certificate)?, user.decoded(key)?, user.text("token")?) {
        (Some(pem), _, _) if !is_certificates(&pem) => {
            Err(user.wrong(certificate, "holds no certificates in PEM"))
        }
        (_, Some(pem), _) if PrivateKeyDer::from_pem_slice(pem.as_bytes()).is_err() => {
            Err(user.wrong(key, "holds no private key in PEM"))
        }
        (Some(certificate), Some(key), _) => {
            Ok(Credentials::Certificate(KeyPairPem { certificate, key: PrivateKeyPem::new(key) }))
        }
        (Some(_), None, _) => Err(user.wrong(key, "is missing beside the certificate")),
        (None, Some(_), _) => Err(user.wrong(certificate, "is missing beside the key")),
        (None, None, Some(token)) if token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(Credentials::Token(SecretText::new(token)))
        }
        (None, None, Some(_)) => Err(user.wrong("token", "has characters that no token has")),
        (None, None, None) => Err(unusable(&user.path, "has neither a client certificate nor a token")),
    }
}

/// An object of the document, with its place.
struct Fields<'document> {
    path: String,
    all: &'document Map<String, Value>,
}

impl<'document> Fields<'document> {
    fn of(value: &'document Value, path: &str) -> Result<Self, Error> {
        let whole = if path.is_empty() { "the kubeconfig" } else { path };
        let all = value.as_object().ok_or_else(|| unusable(whole, "must be an object"))?;
        Ok(Self { path: path.to_owned(), all })
    }

    fn wrong(&self, name: &str, why: &'static str) -> Error {
        let dot = if self.path.is_empty() { "" } else { "." };
        unusable(&format!("{}{dot}{name}", self.path), why)
    }

    /// Refuses whatever is neither known nor known to change nothing, unless it is empty.
    fn only(&self, known: &[&str], harmless: &[&str]) -> Result<(), Error> {
        let is_refused = |(name, value): &(&String, &Value)| {
            !known.contains(&name.as_str()) && !harmless.contains(&name.as_str()) && !is_empty(value)
        };
        match self.all.iter().find(is_refused) {
            None => Ok(()),
            Some((name, _)) => {
                // Somebody may have written a secret where a name belongs.
                let is_name =
                    name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
                Err(self.wrong(if is_name { name } else { "<not a field's name>" }, NOT_USED))
            }
        }
    }

    /// A text that is there and not empty.
    fn text(&self, name: &str) -> Result<Option<&'document str>, Error> {
        match self.all.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.wrong(name, "must be a text")),
        }
    }

    fn required(&self, name: &str) -> Result<&'document str, Error> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// What was encoded in base64; lines may be broken.
    fn decoded(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let text: String = text.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| self.wrong(name, "is not base64"))?;
        let text = String::from_utf8(bytes).map_err(|_| self.wrong(name, "is not a text"))?;
        Ok(Some(text))
    }

    /// What a list has under a name: `[{name, <kind>: {...}}]`.
    fn named(&self, list: &str, kind: &str, name: &str) -> Result<Fields<'document>, Error> {
        let entries = self.all.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut found =
            entries.iter().filter(|entry| entry.get("name").and_then(Value::as_str) == Some(name));
        let (one, more) = (found.next(), found.next());
        let one = one.ok_or_else(|| self.wrong(list, "lacks the entry that is referred to"))?;
        if more.is_some() {
            return Err(self.wrong(list, "has the entry that is referred to twice"));
        }
        Fields::of(one, &format!("{list}[]"))?.only(&["name", kind], &[])?;
        Fields::of(one.get(kind).unwrap_or(&Value::Null), &format!("{list}[].{kind}"))
    }
}

fn unusable(field: &str, why: &'static str) -> Error {
    Error::UnusableKubeconfig { field: field.to_owned(), why }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn is_certificates(pem: &str) -> bool {
    let mut count = 0;
    CertificateDer::pem_slice_iter(pem.as_bytes()).all(|one| {
        count += 1;
        one.is_ok()
    }) && count > 0
}

/// A host and perhaps a port and a path: nothing that clients could read in two ways.
fn is_https(server: &str) -> bool {
    let Some(rest) = server.strip_prefix("https://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().is_ok_and(|port| port > 0)),
        _ => (authority, true),
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"@?#\\%\"<>{}|^`".contains(&byte);
    !host.is_empty() && port && rest.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Authority, Intent, Usage, issue};

    fn pair() -> (String, KeyPairPem) {
        let now = jiff::Timestamp::now();
        let authority =
            Authority::self_signed(&Intent::authority("ca", Duration::from_hours(9)), now).unwrap();
        let pair =
            issue(&authority, &Intent::new("me", Usage::Client, Duration::from_hours(1)), now).unwrap();
        (authority.pair().certificate.clone(), pair)
    }

    fn minted() -> Kubeconfig {
        let (authority, pair) = pair();
        Kubeconfig {
            cluster: "demo".to_owned(),
            user: "admin".to_owned(),
            server: "https://[2001:db8::1]:6443".to_owned(),
            trust: Trust::Embedded(authority),
            tls_server_name: Some("api.example.com".to_owned()),
            credentials: Credentials::Certificate(pair),
            namespace: Some("team".to_owned()),
        }
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let minted = minted();
        assert_eq!(Kubeconfig::read(&minted.to_yaml().unwrap()).unwrap(), minted);
        assert_eq!(Kubeconfig::read(&minted.to_json().unwrap()).unwrap(), minted);
    }

    /// With these fields beside the server and the token.
    fn with(cluster: &str, user: &str) -> Result<Kubeconfig, Error> {
        Kubeconfig::read(&format!(
            "apiVersion: v1\nkind: Config\npreferences: {{}}\n\
             clusters: [{{name: c, cluster: {{server: 'https://192.0.2.1/k8s/c-1'{cluster}}}}}]\n\
             users: [{{name: u, user: {{token: abc.def{user}}}}}, {{name: other, user: {{exec: {{command: sh}}}}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u, namespace: team}}}}]\ncurrent-context: x\n"
        ))
    }

    fn complaint(read: Result<Kubeconfig, Error>) -> String {
        read.unwrap_err().to_string()
    }

    #[test]
    fn other_tools_kubeconfigs_are_read() {
        let read =
            with(", disable-compression: true, insecure-skip-tls-verify: false", ", username: ''").unwrap();
        assert_eq!((read.server.as_str(), &read.trust), ("https://192.0.2.1/k8s/c-1", &Trust::System));
        assert!(matches!(read.credentials, Credentials::Token(token) if token.expose() == "abc.def"));
        let (_, pair) = pair();
        let encoded = format!(
            ", client-certificate-data: {}, client-key-data: {}",
            STANDARD.encode(&pair.certificate),
            STANDARD.encode(pair.key.expose())
        );
        assert_eq!(with("", &encoded).unwrap().credentials, Credentials::Certificate(pair));
    }

    #[test]
    fn a_kubeconfig_starts_no_program_opens_no_file_and_leads_nowhere_else() {
        for (cluster, user, field) in [
            ("", ", exec: {apiVersion: v1, command: /bin/sh}", "users[].user.exec"),
            ("", ", auth-provider: {name: gcp}", "users[].user.auth-provider"),
            ("", ", tokenFile: /var/run/token", "users[].user.tokenFile"),
            ("", ", client-certificate: /etc/c.crt", "users[].user.client-certificate"),
            ("", ", client-key: /etc/c.key", "users[].user.client-key"),
            ("", ", username: me", "users[].user.username"),
            ("", ", password: secret", "users[].user.password"),
            ("", ", as: system:admin", "users[].user.as"),
            ("", ", as-groups: ['system:masters']", "users[].user.as-groups"),
            ("", ", as-user-extra: {a: [b]}", "users[].user.as-user-extra"),
            ("", ", somethingNew: 1", "users[].user.somethingNew"),
            (", certificate-authority: /etc/ca.crt", "", "clusters[].cluster.certificate-authority"),
            (", proxy-url: 'http://192.0.2.9'", "", "clusters[].cluster.proxy-url"),
            (", insecure-skip-tls-verify: true", "", "clusters[].cluster.insecure-skip-tls-verify"),
        ] {
            let said = complaint(with(cluster, user));
            assert_eq!(said, format!("{field} {NOT_USED}"));
        }
    }

    #[test]
    fn complaints_name_the_field_and_repeat_nothing_of_it() {
        for (cluster, user, said) in [
            (", tls-server-name: 'a b'", "", "clusters[].cluster.tls-server-name must be a name"),
            (
                ", certificate-authority-data: hunter2!",
                "",
                "clusters[].cluster.certificate-authority-data is not base64",
            ),
            (
                ", certificate-authority-data: aHVudGVyMg==",
                "",
                "clusters[].cluster.certificate-authority-data holds no certificates in PEM",
            ),
            (
                "",
                ", client-key-data: aHVudGVyMg==",
                "users[].user.client-key-data holds no private key in PEM",
            ),
            (
                "",
                ", client-certificate-data: [hunter2]",
                "users[].user.client-certificate-data must be a text",
            ),
            ("", ", 'hunter2 hunter2': 1", "users[].user.<not a field's name> is set"),
        ] {
            let heard = complaint(with(cluster, user));
            assert!(heard.starts_with(said) && !heard.contains("hunter2"), "{heard}");
        }
        let heard = complaint(Kubeconfig::read("users:\n- token: hunter2\n  \"hunter2"));
        assert!(heard.ends_with("cannot be parsed") && !heard.contains("hunter2"), "{heard}");
        assert_eq!(complaint(Kubeconfig::read("[]")), "the kubeconfig must be an object");
        assert_eq!(complaint(Kubeconfig::read("{}")), "current-context is missing");
        assert!(complaint(Kubeconfig::read(&" ".repeat(LIMIT + 1))).contains("64 KiB"));
    }

    #[test]
    fn a_server_is_reached_by_https_and_means_one_thing() {
        for good in ["https://a", "https://a:1", "https://[::1]", "https://[::1]:6443/", "https://a.b/c/d"] {
            assert!(is_https(good), "{good}");
        }
        for bad in [
            "http://a",
            "a:6443",
            "https://",
            "https://:1",
            "https://a:0",
            "https://a:x",
            "https://b@a",
            "https://a b",
            "https://a?x",
            "https://a#x",
            "https://a\\b",
            "HTTPS://a",
            "https://a\n",
        ] {
            assert!(!is_https(bad), "{bad}");
        }
    }

    /// Whatever is in a Secret, reading it ends with an answer.
    #[test]
    fn damaged_text_is_refused_and_nothing_worse() {
        let text = minted().to_yaml().unwrap();
        for end in (0..text.len()).step_by(7) {
            let _ = Kubeconfig::read(&text[..end]);
            let mut damaged = text.clone().into_bytes();
            damaged[end] = damaged[end].wrapping_add(13);
            let _ = std::str::from_utf8(&damaged).map(Kubeconfig::read);
        }
    }
}
