//! Shows that a long build is alive: a spinner on a terminal, a line now and then elsewhere. A caller that has a
//! display of its own is told instead, because two spinners on one terminal would overwrite each other.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sets::Recipe;

/// Often enough that a CI log does not look hung, rarely enough that it stays short.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);

/// Interval of progress for another program's display on a terminal.
const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);

/// Receiver of the progress of builds.
pub(crate) enum Audience<'listener> {
    /// The readers of our standard error.
    Everybody,
    /// A caller that shows it in its own way.
    Listener(&'listener mut dyn FnMut(&str)),
}

pub(crate) struct Progress<'audience, 'listener> {
    audience: &'audience mut Audience<'listener>,
    /// Between two lines while nothing new begins.
    interval: Duration,
    title: String,
    started: Instant,
    last_line: Instant,
    spinner: Option<ProgressBar>,
    packages: u64,
    doing: String,
}

impl<'audience, 'listener> Progress<'audience, 'listener> {
    /// `place` is which one of how many it is.
    pub(crate) fn start(
        recipe: &Recipe,
        place: (usize, usize),
        audience: &'audience mut Audience<'listener>,
    ) -> Self {
        let title = match place {
            (_, 1) => format!("{} {}", recipe.name, recipe.version),
            (number, count) => format!("{} {} ({number} of {count})", recipe.name, recipe.version),
        };
        let is_terminal = std::io::stderr().is_terminal();
        let is_ours = matches!(audience, Audience::Everybody);
        let spinner = (is_ours && is_terminal).then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}") {
                spinner.set_style(style);
            }
            spinner.set_prefix(title.clone());
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        let now = Instant::now();
        let interval = if is_terminal { TERMINAL_INTERVAL } else { PLAIN_INTERVAL };
        let (packages, doing) = (0, String::new());
        Self { audience, interval, title, started: now, last_line: now, spinner, packages, doing }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// A new phase; always shown.
    pub(crate) fn phase(&mut self, text: &str) {
        text.clone_into(&mut self.doing);
        match &self.spinner {
            Some(spinner) => spinner.set_message(text.to_owned()),
            None => self.line(text),
        }
    }

    /// One line of what `go` says while it works.
    pub(crate) fn go_says(&mut self, event: &GoLine<'_>) {
        self.doing = match event {
            GoLine::Downloading(module) => format!("downloading {module}"),
            GoLine::Package(package) => {
                self.packages += 1;
                format!("compiled {} packages, now {package}", self.packages)
            }
            GoLine::Other(_) => return,
        };
        if let Some(spinner) = &self.spinner {
            spinner.set_message(self.doing.clone());
        }
    }

    /// Called every now and then, also while nothing is said (`go` is silent while it links).
    pub(crate) fn tick(&mut self) {
        if self.spinner.is_none() && self.last_line.elapsed() >= self.interval {
            let text = std::mem::take(&mut self.doing);
            self.line(&text);
            self.doing = text;
        }
    }

    /// The last line of this set, which stays on the screen.
    pub(crate) fn finish(mut self, text: &str) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
        self.line(text);
    }

    fn line(&mut self, text: &str) {
        self.last_line = Instant::now();
        let line = format!("{} [{}] {text}", self.title, minutes(self.elapsed()));
        match self.audience {
            // Whoever read it may have gone; the work goes on.
            Audience::Everybody => drop(writeln!(std::io::stderr(), "{line}")),
            Audience::Listener(tell) => tell(&line),
        }
    }
}

/// What a line on the standard error of `go build -v` means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GoLine<'a> {
    Downloading(&'a str),
    Package(&'a str),
    Other(&'a str),
}

impl<'a> GoLine<'a> {
    pub(crate) fn parse(line: &'a str) -> Self {
        if let Some(module) = line.strip_prefix("go: downloading ") {
            Self::Downloading(module)
        } else if !line.is_empty()
            && !line.contains(|character: char| character.is_whitespace() || character == ':')
        {
            Self::Package(line)
        } else {
            Self::Other(line)
        }
    }
}

/// Minutes and seconds, as a stopwatch shows them.
pub(crate) fn minutes(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_lines_are_told_apart() {
        assert_eq!(
            GoLine::parse("go: downloading k8s.io/api v0.34.10"),
            GoLine::Downloading("k8s.io/api v0.34.10")
        );
        assert_eq!(GoLine::parse("k8s.io/api/core/v1"), GoLine::Package("k8s.io/api/core/v1"));
        for text in ["# k8s.io/api/core/v1", "types.go:3:1: undefined: x", ""] {
            assert_eq!(GoLine::parse(text), GoLine::Other(text));
        }
    }

    #[test]
    fn time_reads_like_a_stopwatch() {
        assert_eq!(minutes(Duration::from_secs(5)), "0:05");
        assert_eq!(minutes(Duration::from_secs(605)), "10:05");
    }
}
