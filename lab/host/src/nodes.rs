//! Takes single nodes of the management cluster away and brings them back, as trials of high availability need it.

use std::sync::Arc;

use hangar_machine::{Machine, MachineState};

use crate::error::{Error, Result};
use crate::management::Node;
use crate::one_host::OneHost;
use crate::phases::{Done, Runner, blocking};
use crate::progress::{Phase, Progress};

impl OneHost {
    /// Ends everything that runs on a node, at once and without a word to anybody. What lies on its disk stays.
    pub async fn stop_node(&self, name: &str, progress: Arc<dyn Progress>) -> Result<()> {
        self.change_node(name, progress, |machine, is_running| {
            if is_running {
                machine.cut_off()?;
            }
            Ok(if is_running { "stopped" } else { "stopped already" })
        })
        .await
    }

    /// Starts a node that was stopped. It is Ready some seconds later.
    pub async fn start_node(&self, name: &str, progress: Arc<dyn Progress>) -> Result<()> {
        self.change_node(name, progress, |machine, is_running| {
            if !is_running {
                machine.start()?;
            }
            Ok(if is_running { "runs already" } else { "started" })
        })
        .await
    }

    async fn change_node(
        &self,
        name: &str,
        progress: Arc<dyn Progress>,
        change: impl FnOnce(&Machine, bool) -> Result<&'static str> + Send + 'static,
    ) -> Result<()> {
        let machine = self.existing_node(name)?;
        let runner = Runner::new(progress, |_| None);
        let _lock = runner.run(Phase::Lock, self.lock()).await?;
        let work = blocking(move || {
            let is_running = matches!(machine.state()?, Some(MachineState::Running(_)));
            let text = change(&machine, is_running)?;
            Ok(Done::new((), format!("{} {text}", machine.name()), true))
        });
        runner.run(Phase::Machine, work).await
    }

    fn existing_node(&self, name: &str) -> Result<Machine> {
        let machines = self.environment.machines()?;
        let names = machines.iter().map(|status| status.name.as_str());
        let known: Vec<&str> = names.filter(|name| Node::named(name).is_some()).collect();
        match Node::named(name).filter(|_| known.contains(&name)) {
            Some(node) => self.node_machine(node),
            None => Err(Error::NoNode {
                environment: self.name().to_string(),
                name: name.to_owned(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            }),
        }
    }
}
