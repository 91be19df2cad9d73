//! `hangar up`: a management cluster on this host, with Hangar in it.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use hangar_host::{Image, UpOptions, ipnet};
use hangar_operator::install::{self, Options, Target};
use hangar_operator::{DEFAULT_NAMESPACE, Selection};

use super::environment::EnvironmentArguments;
use crate::configuration;
use crate::progress::Steps;

/// Start or repair a management cluster on this host, with Hangar in it. Needs root.
#[derive(Debug, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    environment: EnvironmentArguments,
    /// With a Gateway (Traefik) and the name *.clusters.hangar.test
    #[arg(long)]
    gateway: bool,
    /// The private network's addresses [default: a free part of 100.72.0.0/16]
    #[arg(long, value_name = "CIDR")]
    range: Option<ipnet::Ipv4Net>,
}

impl Up {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let host = self.environment.open()?;
        let image = manager_image()?;
        let reference = image.reference().to_owned();
        let options = UpOptions {
            range: self.range,
            gateway: self.gateway,
            own_images: vec![image],
            ..UpOptions::default()
        };
        let steps = Arc::new(Steps::new());
        let up = host.up(&options, Arc::clone(&steps) as _).await?;
        let start = Instant::now();
        steps.begin("hangar");
        let config = configuration::from_file(&up.kubeconfig).await?;
        let installation = Options {
            namespace: DEFAULT_NAMESPACE.to_owned(),
            image: reference,
            replicas: 1,
            controllers: Selection::all(),
            target: Target::Service { namespace: DEFAULT_NAMESPACE.to_owned() },
        };
        let mut changed = 0;
        let installed = async {
            install::apply(config.clone(), &installation, |progress| {
                changed += usize::from(progress.outcome != "unchanged");
            })
            .await?;
            install::wait_until_available(config, DEFAULT_NAMESPACE).await
        };
        match installed.await {
            Ok(()) if changed == 0 => steps.end("hangar", start.elapsed(), "unchanged"),
            Ok(()) => steps.end("hangar", start.elapsed(), "the manager runs"),
            Err(error) => {
                steps.broke("hangar", start.elapsed(), "the manager does not run");
                return Err(error.into());
            }
        }
        if let Some(obstacle) = up.outside_obstacle {
            println!("machines and pods cannot reach the outside: {obstacle}");
        }
        let kubeconfig = up.kubeconfig.display();
        let hangar = std::env::args().next().unwrap_or_else(|| "hangar".to_owned());
        let name = self.environment.as_flag();
        println!();
        println!("The management cluster runs, with Hangar in it. Try:");
        println!("  kubectl --kubeconfig {kubeconfig} get pods -A");
        println!("  {hangar} status{name}");
        println!("  {hangar} down{name}");
        println!();
        println!("{kubeconfig}");
        Ok(())
    }
}

/// An image of this very program. Its tag follows its content, so that another program is another rollout.
fn manager_image() -> anyhow::Result<Image> {
    let program = std::env::current_exe()?;
    let image = |reference: String| {
        Image::new(reference, ["/hangar"]).with_dynamic_program("/hangar", &program, None)
    };
    let content = image("hangar".to_owned())?.fingerprint()?;
    let short = content.get(..12).unwrap_or(&content);
    Ok(image(format!("hangar.local/hangar:v{}-{short}", env!("CARGO_PKG_VERSION")))?)
}
