//! `hangar down`: removes an environment.

use std::sync::Arc;

use clap::Args;

use super::environment::EnvironmentArguments;
use crate::progress::Phases;

/// Remove what `hangar up` made on this host; only the cache stays.
#[derive(Debug, Args)]
pub(crate) struct Down {
    #[command(flatten)]
    environment: EnvironmentArguments,
}

impl Down {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let host = self.environment.open()?;
        host.down(Arc::new(Phases::new())).await?;
        Ok(())
    }
}
