//! Progress for people: a spinner with the elapsed time for each step at work on a terminal, plain lines when piped.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_host::{Error, Progress, Step};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Shows steps as they go; several may be at work.
#[derive(Debug)]
pub(crate) struct Steps {
    spinners: MultiProgress,
    current: Mutex<BTreeMap<Step, ProgressBar>>,
    is_terminal: bool,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            spinners: MultiProgress::new(),
            current: Mutex::new(BTreeMap::new()),
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn current(&self) -> MutexGuard<'_, BTreeMap<Step, ProgressBar>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, step: Step, text: &str) {
        if let Some(bar) = self.current().remove(&step) {
            bar.finish_and_clear();
        }
        self.spinners.suspend(|| say(text));
    }
}

/// Whoever listened may have gone (`hangar up 2>&1 | head`); the work goes on.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

impl Progress for Steps {
    fn started(&self, step: Step) {
        if !self.is_terminal {
            return;
        }
        let bar = self.spinners.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>6}  {prefix} {wide_msg:.dim}") {
            bar.set_style(style);
        }
        bar.set_prefix(step.name());
        bar.enable_steady_tick(Duration::from_millis(100));
        self.current().insert(step, bar);
    }

    fn detail(&self, step: Step, text: &str) {
        match self.current().get(&step) {
            Some(bar) => bar.set_message(text.to_owned()),
            None => say(&format!("         {step}: {text}")),
        }
    }

    fn done(&self, step: Step, elapsed: Duration, outcome: &str) {
        self.line(step, &format!("{:>6.1}s  {step}: {outcome}", elapsed.as_secs_f64()));
    }

    fn failed(&self, step: Step, elapsed: Duration, _error: &Error) {
        // The error itself is printed once, at the end.
        self.line(step, &format!("{:>6.1}s  {step} failed", elapsed.as_secs_f64()));
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // Steps that were given up because another one failed.
        for bar in std::mem::take(&mut *self.current()).into_values() {
            bar.finish_and_clear();
        }
    }
}
