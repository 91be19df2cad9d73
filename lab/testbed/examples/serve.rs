//! Starts a real API server by hand: `cargo run -p hangar-testbed --example serve`, then use the kubeconfig it prints.
//! Ctrl-C ends it and removes everything.

use hangar_testbed::{Options, Testbed};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let testbed = tokio::task::spawn_blocking(|| Testbed::start(Options::default())).await??;
    println!("export KUBECONFIG={}", testbed.kubeconfig().display());
    eprintln!("logs: {}; Ctrl-C ends it", testbed.logs().display());
    tokio::signal::ctrl_c().await?;
    tokio::task::spawn_blocking(move || drop(testbed)).await?;
    Ok(())
}
