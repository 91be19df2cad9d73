//! Tenants, cluster owners and clouds that wish us ill, beside a cluster that is created, scaled and deleted as usual.
//!
//! The manager is a process of its own, so that its memory and its restarts can be counted.

mod evil;
mod servers;
mod site;

use std::time::{Duration, Instant};

use hangar_testbed::{Options, Testbed};

use self::evil::{Evil, are_told, store_odd_objects};
use self::servers::{Manner, Tenant};
use self::site::{Good, Site, install_stubs};
use crate::installation::{Manager, conversion_works, eventually, install};

/// An installation with the stub kinds.
fn installed() -> Testbed {
    tokio::task::block_in_place(|| {
        let bed = Testbed::start(Options::default()).unwrap();
        install(&bed, &[]);
        install_stubs(&bed);
        bed
    })
}

/// A manager that is at work.
async fn managed(bed: &Testbed) -> Manager {
    let manager = Manager::start(bed, "only", &[]);
    manager.wait_until_ready().await;
    conversion_works(&bed.client()).await;
    manager
}

/// Twenty tenants that answer as much as they can, all at once.
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_tenants_fill_no_memory_and_another_cluster_goes_on() {
    let bed = installed();
    let mut manager = managed(&bed).await;
    let (evil, good) = (Site::new(&bed, "evil"), Good::new(&bed, "good").await);
    let before = manager.peak_mib();
    let manners = [Manner::Endless, Manner::Fields, Manner::Pages, Manner::Line, Manner::Drip];
    let mut tenants = Vec::new();
    for number in 0..20 {
        let manner = manners[number % manners.len()];
        let tenant = Tenant::start(manner, 0).await;
        evil.tenant(&format!("t{number}"), &tenant.kubeconfig(), 1).await;
        tenants.push((manner, tenant));
    }
    good.lives().await;
    eventually("every tenant has answered", async || tenants.iter().all(|(_, tenant)| tenant.calls() > 2))
        .await;
    let peak = manager.peak_mib();
    for manner in manners {
        let calls: Vec<usize> =
            tenants.iter().filter(|(one, _)| *one == manner).map(|(_, tenant)| tenant.calls()).collect();
        println!("{manner:?}: {calls:?} calls");
    }
    println!("{before} MiB before, {peak} MiB at most");
    assert!(manager.is_running(), "{}", manager.log());
    assert!(peak < 400, "{before} MiB became {peak} MiB");
}

/// One namespace does everything at once, for half a minute, or for five minutes where somebody asks for it with
/// `HANGAR_LOAD=1`.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_afternoon_beside_a_cluster_that_lives_as_usual() {
    let (seconds, machines) = if std::env::var_os("HANGAR_LOAD").is_some() { (300, 500) } else { (30, 50) };
    let bed = installed();
    let odd = store_odd_objects(&bed).await;
    tokio::task::block_in_place(|| install(&bed, &[]));
    let mut manager = managed(&bed).await;
    let directory = tempfile::tempdir().unwrap();
    let marker = directory.path().join("ran");
    let good = Good::new(&bed, "good").await;
    let evil = Evil::start(&bed, good.namespace(), machines, &marker).await;
    let (until, mut lives) = (Instant::now() + Duration::from_secs(seconds), 0);
    while lives == 0 || Instant::now() < until {
        let began = Instant::now();
        good.lives().await;
        lives += 1;
        println!("{:?}: a life", began.elapsed());
    }
    eventually("every server was called", async || evil.served().iter().all(|(_, calls)| *calls > 0)).await;
    eventually("what cannot be read is told", async || are_told(&odd).await).await;
    let (acts, peak) = (evil.acts.lock().unwrap().clone(), manager.peak_mib());
    println!("{lives} lives of the good cluster, {peak} MiB at most; {acts:?}; {:?}", evil.served());
    assert!(manager.is_running(), "{}", manager.log());
    assert!(manager.metrics().contains("\nhangar_leader_lost_total 0\n"), "{}", manager.log());
    assert!(peak < 512, "{peak} MiB");
    assert_eq!(acts.len(), 5, "{acts:?}");
    assert_eq!((evil.forbidden_connections(), marker.exists()), (0, false));
}
