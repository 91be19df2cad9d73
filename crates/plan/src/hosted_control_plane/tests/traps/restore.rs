//! Traps about restores: nothing starts empty, nothing is replaced without consent, and each runs once.

use super::*;

pub(super) const ID: &str = "20261118T194500Z";
const TYPE: &str = conditions::etcd_restored::TYPE;
const HEALTH: &str = conditions::etcd_cluster_healthy::TYPE;

fn spec(members: i32, restore: &Value) -> Value {
    let backup = json!({"schedule": "@daily", "secret": {"name": "bucket", "bucketKey": "BUCKET"}});
    json!({"etcd": {"replicas": members, "backup": backup, "restore": restore}})
}

fn latest() -> Value {
    json!({"backup": "latest"})
}

pub(super) fn ask(observed: &mut Observed, restore: &Value) {
    let wanted = super::super::fixture::control_plane(&spec(1, restore)).spec.settings.etcd.unwrap();
    let etcd = observed.control_plane.spec.settings.etcd.get_or_insert_default();
    (etcd.restore, etcd.backup) = (wanted.restore, wanted.backup);
}

pub(super) fn backup() -> BackupFacts {
    BackupFacts {
        id: ID.to_owned(),
        from: "team/demo".to_owned(),
        etcd_version: "3.6.16".to_owned(),
        is_encrypted: false,
        has_keys: false,
        store: "https://s3.example.org:9000".to_owned(),
        problem: None,
    }
}

pub(super) fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

pub(super) fn annotation(observed: &Observed, name: &str) -> Option<Value> {
    let text = observed.control_plane.metadata.annotations.as_ref()?.get(name)?;
    Some(serde_json::from_str(text).unwrap())
}

pub(super) fn deletes_etcd(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| {
        let id = flow::Identified::id(step);
        id.verb == "delete" && id.name.contains("StatefulSet")
    })
}

pub(super) fn template(plan: &Plan) -> Option<String> {
    let is_there = kinds(plan, "StatefulSet") == ["demo-etcd"];
    let labels = || &object(plan, "StatefulSet", "demo-etcd")["spec"]["template"]["metadata"]["labels"];
    is_there.then(|| labels()[names::VERSION_LABEL].as_str().unwrap().to_owned())
}

/// The StatefulSet of the restore is there, with so many pods that are done.
pub(super) fn restoring(observed: &mut Observed, members: i32, ready: i32) {
    let version = template(&checked(observed)).unwrap();
    observed.etcd = Read::One(workload("etcd", members, ready, &version));
    let pods = (0..members).map(|ordinal| PodFacts {
        is_ready: ordinal < ready,
        ..pod(&format!("demo-etcd-{ordinal}"), &version)
    });
    observed.etcd_pods = Read::found(pods);
    observed.etcd_claims = Read::found((0..members).map(claim));
}

/// A control plane without data that starts from a backup, until the backup is on record.
fn begun(members: i32, backup: BackupFacts) -> Observed {
    let mut observed = created(&spec(members, &latest()));
    observed.restorable = Read::One(backup);
    settle(&mut observed);
    observed
}

/// The same until it runs.
fn finished(members: i32, backup: BackupFacts) -> Observed {
    let mut observed = begun(members, backup);
    restoring(&mut observed, members, members);
    settle(&mut observed);
    observed
}

#[test]
fn nothing_starts_empty_where_a_restore_is_asked_for() {
    let mut observed = created(&spec(3, &latest()));
    settle(&mut observed);
    assert_eq!(observed.wanted(), Some(Wanted::Backup));
    for (read, expected) in [
        (Read::unknown("the store does not answer"), "Unknown NotReadable"),
        (Read::Absent, "False NoBackup"),
        (Read::One(BackupFacts { problem: Some("wrong key".to_owned()), ..backup() }), "False Unusable"),
    ] {
        observed.restorable = read;
        settle(&mut observed);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, TYPE), expected);
        assert_eq!(template(&plan), None, "etcd waits");
        assert_eq!(condition_status(&plan, HEALTH), "False Restoring");
        assert_eq!(annotation(&observed, names::RESTORE_ANNOTATION), None);
        // They may be in the backup.
        for material in Material::ALL.into_iter().filter(|material| material.is_backed_up()) {
            assert!(observed.secret(material).is_absent(), "{material} was minted");
        }
    }
}

#[test]
fn all_members_restore_the_backup_that_was_recorded_first() {
    let mut observed = begun(3, backup());
    let record = annotation(&observed, names::RESTORE_ANNOTATION).unwrap();
    assert_eq!((&record["backup"], &record["generation"]), (&json!(ID), &json!(2)));
    // A newer one comes along.
    observed.restorable = Read::One(BackupFacts { id: "20270101T000000Z".to_owned(), ..backup() });
    let plan = checked(&observed);
    assert_eq!(template(&plan).as_deref(), Some("restore-2-20261118T194500Z"));
    let spec = &object(&plan, "StatefulSet", "demo-etcd")["spec"]["template"]["spec"];
    let first: Vec<&str> =
        spec["initContainers"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(first, ["fetch", "etcdutl", "place"]);
    let text = spec.to_string();
    assert!(text.contains("--backup=20261118T194500Z") && !text.contains("20270101"), "{text}");
    assert_eq!(kinds(&plan, "Deployment"), [] as [&str; 0], "no API server begins before etcd");
    let objects = plan.objects.iter().filter(|object| {
        let identity = ObjectIdentity::of(object);
        ["StatefulSet", "NetworkPolicy"].contains(&identity.kind.as_str()) && identity.name == "demo-etcd"
    });
    let objects = objects.map(|object| serde_json::to_value(object).unwrap());
    insta::assert_snapshot!("a_restore_of_three_members", golden::documents(objects));
}

#[test]
fn a_restore_is_finished_when_all_members_have_their_data_and_not_before() {
    let mut observed = begun(3, backup());
    restoring(&mut observed, 3, 2);
    settle(&mut observed);
    assert_eq!(annotation(&observed, names::ETCD_ANNOTATION), None, "two of three are a quorum, and not all");
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "False Restoring");
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "False NoAPIServer");
    restoring(&mut observed, 3, 3);
    settle(&mut observed);
    let recorded = annotation(&observed, names::ETCD_ANNOTATION).unwrap();
    assert_eq!((&recorded["generation"], &recorded["data"]), (&json!(2), &json!("data-2")));
    let plan = checked(&observed);
    assert_eq!(template(&plan), None, "the pods of the restore go first");
    assert!(matches!(&observed.etcd, Read::One(facts) if facts.is_deleting));
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    let plan = checked(&observed);
    assert_eq!(template(&plan).as_deref(), Some("3.6.16-0"));
    let files = object(&plan, "ConfigMap", "demo-etcd")["data"].as_object().unwrap();
    assert_eq!(files.keys().next().unwrap(), "demo-etcd-0.data-2.yaml");
    let file: Value = serde_saphyr::from_str(files["demo-etcd-0.data-2.yaml"].as_str().unwrap()).unwrap();
    assert_eq!(file["data-dir"], "/var/lib/etcd/data-2");
    assert_eq!(file["initial-cluster-state"], "existing");
    let set = object(&plan, "StatefulSet", "demo-etcd").to_string();
    assert!(set.contains("/$(POD_NAME).data-2.yaml") && !set.contains("restoring"), "{set}");
}

#[test]
fn a_restore_runs_once_however_long_its_field_stays() {
    let mut observed = finished(1, BackupFacts { has_keys: true, ..backup() });
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    let record = annotation(&observed, names::RESTORE_ANNOTATION);
    for read in [Read::unknown(NOT_ASKED), Read::Absent, Read::One(backup())] {
        observed.restorable = read;
        settle(&mut observed);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, TYPE), "True Restored");
        assert!(!deletes_etcd(&plan) && observed.wanted() != Some(Wanted::Backup));
        assert_eq!(annotation(&observed, names::RESTORE_ANNOTATION), record);
    }
    // Another one is another wish, and this control plane has data now.
    ask(&mut observed, &json!({"backup": "20270101T000000Z"}));
    assert_eq!(condition_status(&checked(&observed), TYPE), "False NotConfirmed");
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().restore = None;
    assert_eq!(condition_status(&checked(&observed), TYPE), "");
}

#[test]
fn a_healthy_control_plane_keeps_its_data_without_the_consent_that_the_refusal_names() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    let before = checked(&observed).objects;
    observed.restorable = Read::One(backup());
    for replace in
        [json!(null), json!(""), json!("demo"), json!("demo/2"), json!("demo-plane/1"), json!("true")]
    {
        ask(&mut observed, &json!({"backup": "latest", "replace": replace}));
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, TYPE), "False NotConfirmed", "{replace}");
        assert!(
            message(&plan, TYPE).contains("spec.etcd.restore.replace: demo/1"),
            "{}",
            message(&plan, TYPE)
        );
        assert!(plan.steps.is_empty() && plan.objects == before, "{:?}", plan.steps);
        assert_eq!(condition_status(&plan, HEALTH), "True AllReady");
        assert_ne!(observed.wanted(), Some(Wanted::Backup), "nobody looks for what is refused");
    }
}

#[test]
fn data_that_is_replaced_stays_and_a_consent_holds_once() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    ask(&mut observed, &json!({"backup": ID, "replace": "demo/1"}));
    observed.restorable = Read::One(backup());
    let plan = checked(&observed);
    assert!(!deletes_etcd(&plan), "not before it is on record");
    assert!(template(&plan).is_some_and(|version| version == "3.6.16-0"));
    settle(&mut observed);
    assert!(matches!(&observed.etcd, Read::One(facts) if facts.is_deleting), "its pods make way");
    assert_eq!(annotation(&observed, names::ETCD_ANNOTATION).unwrap()["generation"], 1);
    assert_eq!(
        data_to_replace(&observed.control_plane),
        Ok(Some("demo/1".to_owned())),
        "people are told the same"
    );
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    let keys: Vec<_> = Material::IRREPLACEABLE
        .map(|material| observed.secret(material).iter().next().copied().cloned())
        .into();
    restoring(&mut observed, 3, 3);
    let plan = checked(&observed);
    let arguments = object(&plan, "StatefulSet", "demo-etcd").to_string();
    assert!(
        arguments.contains("--to=/var/lib/etcd/data-2") && !arguments.contains("=/var/lib/etcd/data\""),
        "{arguments}"
    );
    settle(&mut observed);
    assert_eq!(annotation(&observed, names::ETCD_ANNOTATION).unwrap()["generation"], 2);
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    settle(&mut observed);
    let after: Vec<_> = Material::IRREPLACEABLE
        .map(|material| observed.secret(material).iter().next().copied().cloned())
        .into();
    assert_eq!(keys, after, "keys of a control plane that lives are its own");
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "True Restored");
    let servers = object(&plan, "Deployment", "demo-apiserver")["spec"]["template"]["metadata"].to_string();
    assert!(servers.contains(names::RESTORED_ANNOTATION), "API servers forget what they had read: {servers}");
    // The same consent does not hold for another backup.
    ask(&mut observed, &json!({"backup": "20270101T000000Z", "replace": "demo/1"}));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "False NotConfirmed");
    assert!(message(&plan, TYPE).contains("replace: demo/2"), "{}", message(&plan, TYPE));
}

/// The disk is full, the backup is cut off: somebody gives up, and the data of before is still there.
#[test]
fn a_restore_that_fails_can_be_given_up_and_leads_back() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    let (before, record) = (template(&checked(&observed)), annotation(&observed, names::ETCD_ANNOTATION));
    ask(&mut observed, &json!({"backup": ID, "replace": "demo/1"}));
    observed.restorable = Read::One(backup());
    settle(&mut observed);
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    restoring(&mut observed, 3, 1);
    for failing in observed.etcd_pods.iter_mut().filter(|pod| !pod.is_ready) {
        failing.trouble =
            Some("fetch: CrashLoopBackOff: it last ended with exit code 1: no space".to_owned());
    }
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "False Failing");
    assert!(message(&plan, TYPE).contains("no space"), "{}", message(&plan, TYPE));
    assert!(!plan.steps.iter().any(|step| is(step, "evict", "pod")), "it tries again by itself");
    let etcd = observed.control_plane.spec.settings.etcd.as_mut().unwrap();
    etcd.restore.as_mut().unwrap().replace = None;
    settle(&mut observed);
    assert!(matches!(&observed.etcd, Read::One(facts) if facts.is_deleting));
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    let plan = checked(&observed);
    assert_eq!((template(&plan), annotation(&observed, names::ETCD_ANNOTATION)), (before, record));
    assert!(object(&plan, "ConfigMap", "demo-etcd")["data"].get("demo-etcd-0.yaml").is_some());
    assert_eq!(condition_status(&plan, TYPE), "False NotConfirmed");
    // What it left is never gone on with: the next one has a directory of its own.
    etcd_replace(&mut observed, "demo/1");
    let plan = checked(&observed);
    assert!(template(&plan).unwrap().starts_with("restore-2-"), "the same one goes on");
    ask(&mut observed, &json!({"backup": "20270101T000000Z", "replace": "demo/1"}));
    observed.restorable = Read::One(BackupFacts { id: "20270101T000000Z".to_owned(), ..backup() });
    settle(&mut observed);
    assert_eq!(annotation(&observed, names::RESTORE_ANNOTATION).unwrap()["generation"], 3);
}

fn etcd_replace(observed: &mut Observed, consent: &str) {
    let etcd = observed.control_plane.spec.settings.etcd.as_mut().unwrap();
    etcd.restore.as_mut().unwrap().replace = Some(consent.to_owned());
}

#[test]
fn a_restore_that_is_withdrawn_does_not_become_an_empty_control_plane() {
    let mut observed = begun(1, backup());
    restoring(&mut observed, 1, 0);
    let etcd = observed.control_plane.spec.settings.etcd.as_mut().unwrap();
    let asked = etcd.restore.take();
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "False Withdrawn");
    assert_eq!(template(&plan), None);
    (observed.etcd, observed.etcd_pods, observed.etcd_claims) = (Read::Absent, Read::Absent, Read::Absent);
    assert_eq!(template(&checked(&observed)), None, "not even on new volumes");
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().restore = asked;
    assert!(template(&checked(&observed)).unwrap().starts_with("restore-2-"));
}

#[test]
fn a_backup_that_was_not_asked_for_or_cannot_be_read_is_refused() {
    type Edit = (fn(&mut BackupFacts), Value, &'static str);
    let edits: [Edit; 7] = [
        (|found| "team/other".clone_into(&mut found.from), latest(), "is not the one that was asked for"),
        (|found| "../../evil".clone_into(&mut found.id), latest(), "is not the one that was asked for"),
        (|_| {}, json!({"backup": "20270101T000000Z"}), "is not the one that was asked for"),
        (|found| found.is_encrypted = true, latest(), "names no key"),
        (
            |_| {},
            json!({"backup": "latest", "encryption": {"secretName": "key"}}),
            "must not be given another",
        ),
        (|found| "3.7.0".clone_into(&mut found.etcd_version), latest(), "reads nothing newer"),
        (|found| "x".clone_into(&mut found.store), latest(), "the store has no URL"),
    ];
    for (edit, restore, expected) in edits {
        let mut observed = created(&spec(1, &restore));
        let mut found = backup();
        edit(&mut found);
        observed.restorable = Read::One(found);
        settle(&mut observed);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, TYPE), "False Unusable", "{expected}");
        assert!(message(&plan, TYPE).contains(expected), "{}", message(&plan, TYPE));
        assert_eq!(annotation(&observed, names::RESTORE_ANNOTATION), None);
    }
    let from = json!({"backup": "latest", "from": {"namespace": "team", "name": "other"}});
    let mut observed = created(&spec(1, &from));
    observed.restorable = Read::One(BackupFacts { from: "team/other".to_owned(), ..backup() });
    settle(&mut observed);
    assert_eq!(annotation(&observed, names::RESTORE_ANNOTATION).unwrap()["from"], "team/other", "a clone");
}

#[test]
fn keys_come_from_the_backup_and_those_of_etcd_are_new() {
    let taken = |observed: &mut Observed| {
        let mut taken = Vec::new();
        loop {
            let plan = checked(observed);
            let Some(step) = plan.steps.iter().next().cloned() else { break };
            if let Step::Own(OwnStep::Mint(mint)) = &step
                && matches!(mint.content, Content::BackedUp { .. })
            {
                taken.push(mint.material);
            }
            observed.fold(&step, &super::super::fixture::outcome(&step));
            if let Step::Own(OwnStep::Mint(mint)) = &step {
                super::super::fixture::complete(observed, mint);
            }
        }
        taken
    };
    let mut observed = created(&spec(1, &latest()));
    observed.restorable = Read::One(BackupFacts { has_keys: true, ..backup() });
    let from_backup = taken(&mut observed);
    assert_eq!(
        from_backup,
        [Material::ClusterAuthority, Material::ServiceAccountKeys, Material::EncryptionConfiguration]
    );
    assert!(matches!(observed.secret(Material::EtcdAuthority), Read::One(_)), "a clone does not share it");
    assert_eq!(
        condition_status(&checked(&observed), conditions::settings_effective::TYPE),
        "",
        "lifetimes are not those asked for, and nobody asked"
    );
    // Without keys they are new, and a condition says what that means.
    let mut observed = created(&spec(1, &latest()));
    observed.restorable = Read::One(backup());
    assert_eq!(taken(&mut observed), []);
    restoring(&mut observed, 1, 1);
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "False KeysLacking");
    assert!(message(&plan, TYPE).contains("cannot be read"), "{}", message(&plan, TYPE));
}

#[test]
fn pods_of_a_restore_are_no_members_and_reach_the_store_only_while_it_runs() {
    let egress = |plan: &Plan| object(plan, "NetworkPolicy", "demo-etcd")["spec"]["egress"].to_string();
    let mut observed = begun(1, backup());
    restoring(&mut observed, 1, 1);
    let plan = checked(&observed);
    assert!(egress(&plan).contains("9000"), "{}", egress(&plan));
    assert_eq!(condition_status(&plan, HEALTH), "False Restoring", "ready pods, and no etcd");
    let text = object(&plan, "StatefulSet", "demo-etcd").to_string();
    for (key, file) in [("BUCKET", "bucket"), ("accessKeyID", "accessKeyID")] {
        assert!(text.contains(&format!(r#"{{"key":"{key}","path":"{file}"}}"#)), "{key}: {text}");
    }
    settle(&mut observed);
    assert!(!egress(&checked(&observed)).contains("9000"));
}

/// Trap: a policy for a store with a name allows every address.
#[test]
fn pods_of_a_restore_get_the_limits_of_the_manager() {
    let mut observed = begun(1, backup());
    let mut limits = crate::limits::Limits::parse("backupNetworks: [10.20.0.0/24, \"fd12::/64\"]").unwrap();
    limits.api_servers = vec!["10.96.0.1".parse().unwrap()];
    observed.limits = std::sync::Arc::new(limits);
    let text = object(&checked(&observed), "StatefulSet", "demo-etcd").to_string();
    for argument in ["--networks=10.20.0.0/24,fd12::/64", "--api-servers=10.96.0.1"] {
        assert!(text.contains(&format!("\"{argument}\"")), "{argument}: {text}");
    }
}

#[test]
fn a_pod_whose_etcdutl_failed_begins_anew() {
    let mut observed = begun(3, backup());
    restoring(&mut observed, 3, 2);
    let plan = checked(&observed);
    assert!(!plan.steps.iter().any(|step| is(step, "evict", "pod")));
    for failing in observed.etcd_pods.iter_mut().filter(|pod| !pod.is_ready) {
        failing.trouble =
            Some("etcdutl: CrashLoopBackOff: back-off; it last ended with exit code 1".to_owned());
    }
    let plan = checked(&observed);
    let evicted: Vec<_> = plan.steps.iter().filter(|step| is(step, "evict", "pod")).collect();
    assert_eq!(evicted.len(), 1, "{evicted:?}");
}

#[test]
fn a_record_of_a_restore_that_cannot_be_read_renders_nothing() {
    let good = begun(1, backup());
    let text = good.control_plane.metadata.annotations.as_ref().unwrap()[names::RESTORE_ANNOTATION].clone();
    for wrong in [
        String::new(),
        "{}".to_owned(),
        text.replace(ID, "../x"),
        text.replace(r#""generation":2"#, r#""generation":1"#),
        text.replace(r#""identity":"demo""#, r#""identity":"other""#),
        text.replace("team/demo", "demo"),
    ] {
        let mut observed = good.clone();
        let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
        annotations.insert(names::RESTORE_ANNOTATION.to_owned(), wrong.clone());
        let plan = checked(&observed);
        assert!(plan.objects.is_empty() && plan.steps.is_empty(), "{wrong}");
        assert_eq!(
            condition_status(&plan, conditions::specification_valid::TYPE),
            "False Invalid",
            "{wrong}"
        );
    }
}

#[test]
fn what_is_asked_for_is_looked_for_and_nothing_else() {
    let search = |restore: &Value| created(&spec(1, restore)).search();
    let claimed = |restore: &Value| {
        let mut observed = created(&spec(1, restore));
        settle(&mut observed);
        observed.search().unwrap()
    };
    assert_eq!(search(&latest()), None, "not before it is claimed");
    let plain = claimed(&latest());
    assert_eq!((plain.from, plain.id, plain.before), (("team".to_owned(), "demo".to_owned()), None, None));
    assert_eq!((plain.secret.name.as_str(), plain.encryption), ("bucket", None));
    let all = claimed(&json!({
        "backup": "latest", "before": "2026-11-18T12:00:00Z", "from": {"namespace": "old", "name": "shop"},
        "secret": {"name": "other"}, "encryption": {"secretName": "key"},
    }));
    assert_eq!(all.from, ("old".to_owned(), "shop".to_owned()));
    assert_eq!(all.before, Some("2026-11-18T12:00:00Z".parse().unwrap()));
    assert_eq!((all.secret.name.as_str(), all.encryption.unwrap().secret_name.as_str()), ("other", "key"));
    assert_eq!(claimed(&json!({"backup": ID})).id.as_deref(), Some(ID));
    // Nobody says where.
    let mut observed = created(&json!({"etcd": {"replicas": 1, "restore": {"backup": "latest"}}}));
    settle(&mut observed);
    assert_ne!(observed.wanted(), Some(Wanted::Backup));
    assert_eq!(condition_status(&checked(&observed), TYPE), "False Unusable");
}
