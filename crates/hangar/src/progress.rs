//! Progress for users: on a terminal a spinner with the elapsed time for each running phase, otherwise plain lines.
//! Without a terminal a silent phase is printed again after a while, so that a long one does not seem to hang.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hangar_host::{Error, Phase, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How long a phase may be silent when piped. Builds speak every 30 s by themselves.
const SILENCE: Duration = Duration::from_secs(40);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Shows phases as they go; several may be at work.
#[derive(Debug)]
pub(crate) struct Phases {
    spinners: MultiProgress,
    works: Arc<Mutex<Works>>,
    is_terminal: bool,
}

/// The phases at work.
type Works = BTreeMap<Phase, Work>;

#[derive(Debug)]
struct Work {
    spinner: Option<ProgressBar>,
    started: Instant,
    /// When it was last heard of, and with what.
    heard: Instant,
    detail: String,
}

impl Phases {
    pub(crate) fn new() -> Self {
        let works = Arc::new(Mutex::new(Works::new()));
        let is_terminal = std::io::stderr().is_terminal();
        if !is_terminal {
            let works = Arc::downgrade(&works);
            std::thread::spawn(move || remind(&works));
        }
        Self { spinners: MultiProgress::new(), works, is_terminal }
    }

    fn works(&self) -> MutexGuard<'_, Works> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, phase: Phase, text: &str) {
        let spinner = self.works().remove(&phase).and_then(|work| work.spinner);
        if let Some(spinner) = spinner {
            spinner.finish_and_clear();
        }
        self.spinners.suspend(|| say(text));
    }
}

/// The reader may be gone (`hangar up 2>&1 | head`); the work goes on.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints silent phases until the display ends.
fn remind(works: &Weak<Mutex<Works>>) {
    while let Some(works) = works.upgrade() {
        let mut works = works.lock().unwrap_or_else(PoisonError::into_inner);
        for line in reminders(&mut works, Instant::now()) {
            say(&line);
        }
        drop(works);
        std::thread::sleep(LOOK);
    }
}

/// A line for each phase that has been silent for long.
fn reminders(works: &mut Works, now: Instant) -> Vec<String> {
    let mut lines = Vec::new();
    for (phase, work) in works {
        if now.saturating_duration_since(work.heard) >= SILENCE {
            work.heard = now;
            let seconds = now.saturating_duration_since(work.started).as_secs();
            let detail = if work.detail.is_empty() { "at work" } else { &work.detail };
            lines.push(format!("         {phase}: {detail} ({seconds} s so far)"));
        }
    }
    lines
}

impl Progress for Phases {
    fn started(&self, phase: Phase) {
        let spinner = self.is_terminal.then(|| {
            let bar = self.spinners.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{elapsed:>6}  {prefix} {wide_msg:.dim}") {
                bar.set_style(style);
            }
            bar.set_prefix(phase.name());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        let now = Instant::now();
        self.works().insert(phase, Work { spinner, started: now, heard: now, detail: String::new() });
    }

    fn detail(&self, phase: Phase, text: &str) {
        let spinner = self.works().get_mut(&phase).and_then(|work| {
            work.heard = Instant::now();
            text.clone_into(&mut work.detail);
            work.spinner.clone()
        });
        match spinner {
            Some(spinner) => spinner.set_message(text.to_owned()),
            None => say(&format!("         {phase}: {text}")),
        }
    }

    fn done(&self, phase: Phase, elapsed: Duration, outcome: &str) {
        self.line(phase, &format!("{:>6.1}s  {phase}: {outcome}", elapsed.as_secs_f64()));
    }

    fn failed(&self, phase: Phase, elapsed: Duration, _error: &Error) {
        // The error itself is printed once, at the end.
        self.line(phase, &format!("{:>6.1}s  {phase} failed", elapsed.as_secs_f64()));
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        // Phases that were given up because another one failed.
        for spinner in std::mem::take(&mut *self.works()).into_values().filter_map(|work| work.spinner) {
            spinner.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_step_is_mentioned_again_and_again() {
        let start = Instant::now();
        let work =
            |detail: &str| Work { spinner: None, started: start, heard: start, detail: detail.to_owned() };
        let mut works =
            Works::from([(Phase::Images, work("importing 15 images")), (Phase::Hangar, work(""))]);
        assert_eq!(reminders(&mut works, start + Duration::from_secs(39)), Vec::<String>::new());
        if let Some(work) = works.get_mut(&Phase::Hangar) {
            work.heard = start + Duration::from_secs(10);
        }
        assert_eq!(
            reminders(&mut works, start + Duration::from_secs(41)),
            ["         images: importing 15 images (41 s so far)"]
        );
        assert_eq!(
            reminders(&mut works, start + Duration::from_secs(51)),
            ["         hangar: at work (51 s so far)"]
        );
        assert_eq!(reminders(&mut works, start + Duration::from_secs(120)).len(), 2);
    }
}
