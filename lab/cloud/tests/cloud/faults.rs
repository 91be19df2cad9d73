//! Tests of fault rules.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{in_time, send, start};

#[tokio::test]
async fn a_write_happens_although_its_answer_is_lost() {
    let bed = start().await;
    let rule = json!({
        "name": "lost", "method": "POST", "path": "/network/v2.0/networks", "times": 1, "action": "cut_after",
    });
    bed.admin("POST", "faults", Some(rule)).await.expect(204);
    let headers = [("X-Auth-Token", bed.token.as_str())];
    let body = json!({"network": {"name": "lost"}});
    send(&bed.cloud, "POST", "/network/v2.0/networks", &headers, Some(&body)).await.unwrap_err();
    assert_eq!(bed.get("/network/v2.0/networks?name=lost").await["networks"].as_array().unwrap().len(), 1);
    assert_eq!(bed.cloud.faults()[0].fired, 1);
    let cut = bed.cloud.calls().into_iter().find(|call| call.method == "POST" && call.status == 0);
    assert_eq!(cut.unwrap().path, "/network/v2.0/networks");
}

#[tokio::test]
async fn a_call_that_never_arrived_changed_nothing() {
    let bed = start().await;
    let rule = json!({"name": "cut", "method": "POST", "times": 1, "action": "cut_before"});
    bed.admin("POST", "faults", Some(rule)).await.expect(204);
    let headers = [("X-Auth-Token", bed.token.as_str())];
    let body = json!({"network": {"name": "n"}});
    send(&bed.cloud, "POST", "/network/v2.0/networks", &headers, Some(&body)).await.unwrap_err();
    assert_eq!(bed.get("/network/v2.0/networks?name=n").await["networks"], json!([]));
}

/// What makes a second create dangerous: the first is not over when its client has given up.
#[tokio::test]
async fn a_call_is_carried_out_although_its_client_has_given_up() {
    let bed = start().await;
    for action in ["delay", "delay_after"] {
        let rule =
            json!({"name": action, "method": "POST", "times": 1, "action": {action: {"milliseconds": 300}}});
        bed.admin("POST", "faults", Some(rule)).await.expect(204);
        let body = json!({"network": {"name": action}});
        let headers = [("X-Auth-Token", bed.token.as_str())];
        let path = format!("/network/v2.0/networks?name={action}");
        let call = send(&bed.cloud, "POST", "/network/v2.0/networks", &headers, Some(&body));
        let found = async || bed.get(&path).await["networks"].as_array().unwrap().len();
        let has_arrived = || bed.cloud.faults().iter().any(|it| it.rule.name == action && it.fired == 1);
        let arrived = async {
            while !has_arrived() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = arrived => {}
            _ = call => panic!("{action}: answered at once"),
        }
        in_time(async {
            while found().await == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert_eq!(found().await, 1, "{action}");
    }
    assert!(bed.cloud.faults().iter().all(|armed| armed.fired == 1));
}

#[tokio::test]
async fn a_service_that_is_away_refuses_everything_and_others_do_not() {
    let bed = start().await;
    let action = json!({"fail": {"status": 503, "message": "away", "retry_after_seconds": 60}});
    let rule = json!({"name": "nova", "path": "/compute/*", "action": action});
    bed.admin("POST", "faults", Some(rule)).await.expect(204);
    for path in ["/compute/v2.1/servers/detail", "/compute/v2.1/flavors"] {
        let answer = bed.call("GET", path, None).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, "60"));
    }
    bed.get("/network/v2.0/networks").await;
    assert_eq!(bed.cloud.faults()[0].fired, 2);
}

#[tokio::test]
async fn refusals_by_rule_have_the_service_s_shape() {
    let bed = start().await;
    let arm = async |action: Value| {
        bed.admin("POST", "faults", Some(json!({"name": "x", "action": action}))).await.expect(204);
    };
    arm(json!({"too_many_requests": {"retry_after_seconds": 7}})).await;
    let answer = bed.call("GET", "/compute/v2.1/servers", None).await;
    assert_eq!(answer.header("retry-after"), "7");
    assert_eq!(answer.expect(429)["overLimit"]["code"], 429);
    arm(json!({"fail": {"status": 503, "message": "down"}})).await;
    let error = bed.call("GET", "/network/v2.0/ports", None).await.expect(503);
    assert_eq!(error["NeutronError"]["message"], "down");
    arm(json!("over_quota")).await;
    let error = bed.call("POST", "/network/v2.0/ports", Some(json!({}))).await.expect(409);
    assert_eq!(error["NeutronError"]["message"], "Quota exceeded for resources: ['port'].");
    bed.admin("DELETE", "faults", None).await.expect(204);
    bed.get("/compute/v2.1/servers").await;
}

#[tokio::test]
async fn a_server_that_a_rule_fails_ends_in_error() {
    let bed = start().await;
    let message = "No valid host was found. There are not enough hosts available.";
    let rule = json!({
        "name": "unlucky", "method": "POST", "path": "*/servers", "body": "\"unlucky\"",
        "action": {"fail_server": {"message": message}},
    });
    bed.admin("POST", "faults", Some(rule)).await.expect(204);
    let lucky = bed.server("lucky", json!({"networks": "none"})).await;
    let unlucky = bed.server("unlucky", json!({"networks": "none"})).await;
    in_time(bed.wait_status(&lucky, "ACTIVE")).await;
    let view = in_time(bed.wait_status(&unlucky, "ERROR")).await;
    assert_eq!(view["fault"]["message"], message);
    let path = format!("/compute/v2.1/servers/{unlucky}");
    bed.delete(&path).await.expect(204);
    in_time(bed.wait_gone(&path)).await;
}

#[tokio::test]
async fn the_back_door_needs_its_token() {
    let bed = start().await;
    for headers in
        [vec![], vec![("X-Auth-Token", bed.token.as_str())], vec![("X-Hangar-Admin-Token", "guess")]]
    {
        send(&bed.cloud, "GET", "/hangar/state", &headers, None).await.unwrap().expect(404);
    }
    let state = bed.admin("GET", "state", None).await;
    assert!(!state.text.contains(&bed.token), "no token is told");
    assert!(!state.text.contains("robot-secret"));
    state.expect(200);
}
