//! Tests of the applier: it makes no call without a change, recreates nothing, and leaves foreign objects alone.

use hangar_kit::{
    Error,
    apply::{Applied, Applier},
};
use hangar_plan::flow::Read;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use crate::world::{config_map, create, namespace};

fn deployment(replicas: i32) -> Deployment {
    serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": replicas, "paused": false,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {}},
                "spec": {
                    "hostNetwork": false,
                    "containers": [{
                        "name": "web", "image": "web:1", "env": [{"name": "EMPTY", "value": ""}],
                        "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"cpu": "1.5"}},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                    }],
                    "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}}],
                },
            },
        },
    }))
    .unwrap()
}

/// What a watch would keep.
async fn live<K>(api: &Api<K>, name: &str) -> K
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut object = api.get(name).await.unwrap();
    object.meta_mut().managed_fields = None;
    object
}

#[tokio::test]
async fn nothing_is_sent_when_nothing_changed() {
    let (namespace, client, log) = namespace("apply");
    let api: Api<Deployment> = Api::namespaced(client, &namespace);
    let applier = Applier::new("kit-test");
    let created = applier.apply(&api, &deployment(0), Read::Absent).await.unwrap();
    assert!(matches!(created, Applied::Created(_)), "{created:?}");
    let verbs: Vec<&str> = log.take().iter().map(|call| call.verb.as_str()).collect();
    assert_eq!(verbs, ["get", "apply"]);

    let seen = live(&api, "web").await;
    let requests =
        seen.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0].resources.clone();
    assert_eq!(requests.unwrap().requests.unwrap()["cpu"].0, "1", "the server spells quantities its own way");
    log.take();
    let again = applier.apply(&api, &deployment(0), Read::One(&seen)).await.unwrap();
    assert_eq!((again, log.take().len()), (Applied::Unchanged, 0));

    // The cache may not have it yet: one read, no write.
    let stale = applier.apply(&api, &deployment(0), Read::Absent).await.unwrap();
    let verbs: Vec<&str> = log.take().iter().map(|call| call.verb.as_str()).collect();
    assert_eq!((stale, verbs), (Applied::Unchanged, vec!["get"]));
}

#[tokio::test]
async fn drift_is_repaired_and_what_is_no_longer_wanted_is_removed() {
    let (namespace, client, _) = namespace("drift");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let applier = Applier::new("kit-test");
    let mut desired = config_map("a", "1");
    desired.data.as_mut().unwrap().insert("old".to_owned(), "x".to_owned());
    applier.apply(&api, &desired, Read::Absent).await.unwrap();

    let patch = Patch::Merge(json!({"data": {"value": "2", "theirs": "y"}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let seen = live(&api, "a").await;
    let repaired = applier.apply(&api, &desired, Read::One(&seen)).await.unwrap().object().unwrap();
    assert_eq!(repaired.data.as_ref().unwrap()["value"], "1");

    desired.data.as_mut().unwrap().remove("old");
    let pruned = applier.apply(&api, &desired, Read::One(&repaired)).await.unwrap().object().unwrap();
    let data: Vec<(&str, &str)> =
        pruned.data.as_ref().unwrap().iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(data, [("theirs", "y"), ("value", "1")]);
}

#[tokio::test]
async fn a_deleted_object_is_not_resurrected_and_its_successor_not_touched() {
    let (namespace, client, _) = namespace("undead");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let applier = Applier::new("kit-test");
    applier.apply(&api, &config_map("a", "1"), Read::Absent).await.unwrap();
    let seen = live(&api, "a").await;
    api.delete("a", &DeleteParams::default()).await.unwrap();

    let changed = config_map("a", "2");
    assert_eq!(applier.apply(&api, &changed, Read::One(&seen)).await.unwrap(), Applied::Vanished);
    assert!(api.get_opt("a").await.unwrap().is_none());

    create(&api, &config_map("a", "successor")).await;
    assert_eq!(applier.apply(&api, &changed, Read::One(&seen)).await.unwrap(), Applied::Vanished);
    assert_eq!(api.get("a").await.unwrap().data.unwrap()["value"], "successor");
}

#[tokio::test]
async fn what_is_not_ours_is_refused_and_stays_as_it_is() {
    let (namespace, client, _) = namespace("foreign");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let applier = Applier::new("kit-test");
    create(&api, &config_map("a", "theirs")).await;
    let seen = live(&api, "a").await;
    for read in [Read::Absent, Read::One(&seen)] {
        let refused = applier.apply(&api, &config_map("a", "ours"), read).await;
        assert!(matches!(refused, Err(Error::Foreign { .. })), "{refused:?}");
    }
    assert_eq!(api.get("a").await.unwrap().data.unwrap()["value"], "theirs");
}

#[tokio::test]
async fn nothing_is_decided_from_an_unknown_read() {
    let (namespace, client, log) = namespace("quiet");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let applier = Applier::new("kit-test");
    let desired = config_map("a", "1");
    let unknown = applier.apply(&api, &desired, Read::unknown("not listed yet")).await;
    assert!(matches!(unknown, Err(Error::Undecidable { .. })), "{unknown:?}");
    assert_eq!(log.take(), []);
}

#[tokio::test]
async fn objects_without_types_are_applied_alike() {
    let (namespace, client, log) = namespace("dynamic");
    let resource = ApiResource::erase::<ConfigMap>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &resource);
    let desired = DynamicObject::new("a", &resource).data(json!({"data": {"value": "1"}}));
    let applier = Applier::new("kit-test");
    applier.apply(&api, &desired, Read::Absent).await.unwrap();
    let seen = live(&api, "a").await;
    log.take();
    let again = applier.apply(&api, &desired, Read::One(&seen)).await.unwrap();
    assert!(matches!(again, Applied::Unchanged) && log.take().is_empty());
}
