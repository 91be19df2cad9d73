//! Chaos: members are killed, restarted, replaced, added and removed in random order, while somebody writes. Nothing that
//! was acknowledged is missing in the end; what clients saw of it is counted.
//!
//! A further kind of disturbance is a variant of [`Disturbance`], with its arm in [`disturb`].

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::super::world::{Manager, World, eventually, turn};
use super::rolling::{is_rolled, set};
use super::{Members, Writer, lose, settles, want};

/// How long, in CI.
const MINUTES: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    /// A member is killed, and starts again.
    Kill,
    /// A pod is deleted, and made again.
    DeletePod,
    /// A volume is deleted, and its member replaced.
    DeleteVolume,
    /// From three members to five, or back.
    Resize,
    /// All members are restarted with other settings.
    Restart,
}

const ALL: [Disturbance; 5] = [
    Disturbance::Kill,
    Disturbance::DeletePod,
    Disturbance::DeleteVolume,
    Disturbance::Resize,
    Disturbance::Restart,
];

/// What was wanted last.
struct Stage {
    world: World,
    members: Members,
    wanted: usize,
    /// An argument that members were given last.
    argument: Option<u32>,
}

impl Stage {
    /// All members are there and well, with the latest settings.
    async fn rests(&self) {
        settles(&self.world, &self.members.etcdctl, self.wanted).await;
        let has_argument = |ordinal: usize| {
            let configuration = self.members.configuration(&format!("demo-etcd-{ordinal}"));
            self.argument.is_none_or(|argument| configuration["snapshot-count"] == argument)
        };
        eventually("members have the latest settings", async || {
            is_rolled(&self.world, 1).await && (0..self.wanted).all(has_argument)
        })
        .await;
    }
}

async fn disturb(stage: &mut Stage, what: Disturbance, random: &mut StdRng) {
    let pod = format!("demo-etcd-{}", random.random_range(0..3));
    match what {
        Disturbance::Kill => stage.members.kill(&pod),
        Disturbance::DeletePod => {
            // It may be gone for another reason.
            let _ = stage.world.api::<Pod>().delete(&pod, &DeleteParams::default()).await;
        }
        Disturbance::DeleteVolume => {
            // Two lost volumes of three are no majority: that is another promise.
            stage.rests().await;
            lose(&stage.world, &pod).await;
        }
        Disturbance::Resize => {
            stage.wanted = if stage.wanted == 3 { 5 } else { 3 };
            want(&stage.world, stage.wanted).await;
        }
        Disturbance::Restart => {
            let argument = random.random_range(1000..9000_u32);
            stage.argument = Some(argument);
            set(&stage.world, json!({"args": {"snapshot-count": argument.to_string()}})).await;
        }
    }
}

/// A number that was given.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_survives_chaos_while_somebody_writes() {
    let _turn = turn().await;
    let seed = given("HANGAR_CHAOS_SEED").unwrap_or(1);
    let time = Duration::from_mins(given("HANGAR_CHAOS_MINUTES").unwrap_or(MINUTES));
    println!("seed {seed}, {time:?}");
    let world = World::new("chaos").await;
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 3}})).await;
    let manager = Manager::start();
    let members = Members::start(&world);
    let mut stage = Stage { world, members, wanted: 3, argument: None };
    stage.rests().await;
    let writer = Writer::start(&stage.members.etcdctl);
    let mut random = StdRng::seed_from_u64(seed);
    let mut counts: BTreeMap<Disturbance, usize> = BTreeMap::new();
    let began = Instant::now();
    // Each of them once, whatever the seed.
    let mut first = ALL.to_vec();
    while began.elapsed() < time || !first.is_empty() {
        let what = match first.len() {
            0 => ALL[random.random_range(0..ALL.len())],
            left => first.remove(random.random_range(0..left)),
        };
        println!("{:5.1} s: {what:?}", began.elapsed().as_secs_f64());
        disturb(&mut stage, what, &mut random).await;
        *counts.entry(what).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..4000))).await;
        // Every second one comes upon what the last one left.
        if random.random_bool(0.5) {
            stage.rests().await;
        }
    }
    stage.rests().await;
    println!("{:5.1} s: over", began.elapsed().as_secs_f64());
    let report = writer.end(&stage.members.etcdctl);
    println!(
        "{counts:?}: {} writes were acknowledged, {} failed, at most {:?} without one that was acknowledged, {} \
         are missing",
        report.acknowledged,
        report.failed,
        report.longest,
        report.missing.len(),
    );
    assert_eq!(report.missing, Vec::<String>::new());
    assert!(report.acknowledged > 20, "{}", report.acknowledged);
    manager.stop().await;
}
