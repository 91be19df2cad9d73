//! The add-ons' objects on a real API server: it knows every field, and accepts every object twice.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;

use crate::cluster::{apply, everything, testbed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_knows_every_field() {
    let client = testbed().client();
    let all = everything();
    for round in 0..2 {
        for object in &all {
            apply(&client, object).await;
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "hangar-gateway");
        assert!(accounts.get_opt("traefik").await.unwrap().is_some(), "round {round}");
    }
}
