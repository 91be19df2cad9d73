//! Progress for people: a spinner with the elapsed time on a terminal, plain lines when piped.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hangar_host::{Error, Progress, Step};
use indicatif::{ProgressBar, ProgressStyle};

/// Shows steps as they go.
#[derive(Debug)]
pub(crate) struct Steps {
    current: Mutex<Option<ProgressBar>>,
    is_terminal: bool,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { current: Mutex::new(None), is_terminal: std::io::stderr().is_terminal() }
    }

    /// A step begins.
    pub(crate) fn begin(&self, name: &str) {
        if !self.is_terminal {
            return;
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>6}  {prefix} {wide_msg:.dim}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    /// It is done.
    pub(crate) fn end(&self, name: &str, elapsed: Duration, outcome: &str) {
        self.line(&format!("{:>6.1}s  {name}: {outcome}", elapsed.as_secs_f64()));
    }

    /// It failed.
    pub(crate) fn broke(&self, name: &str, elapsed: Duration, why: &str) {
        self.line(&format!("{:>6.1}s  {name} failed: {why}", elapsed.as_secs_f64()));
    }

    fn line(&self, text: &str) {
        if let Some(bar) = self.current.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
        eprintln!("{text}");
    }
}

impl Progress for Steps {
    fn started(&self, step: Step) {
        self.begin(step.name());
    }

    fn detail(&self, step: Step, text: &str) {
        match &*self.current.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(bar) => bar.set_message(text.to_owned()),
            None => eprintln!("         {step}: {text}"),
        }
    }

    fn done(&self, step: Step, elapsed: Duration, outcome: &str) {
        self.end(step.name(), elapsed, outcome);
    }

    fn failed(&self, step: Step, elapsed: Duration, _error: &Error) {
        // The error itself is printed once, at the end.
        self.line(&format!("{:>6.1}s  {step} failed", elapsed.as_secs_f64()));
    }
}
