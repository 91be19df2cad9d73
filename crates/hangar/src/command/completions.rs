//! `hangar completions`: prints completions for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to print it for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) {
        let mut command = crate::Arguments::command();
        clap_complete::generate(self.shell, &mut command, "hangar", &mut std::io::stdout());
    }
}
