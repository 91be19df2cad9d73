//! The report of a sweep.

use std::fmt;

use hangar_kit::call::fault::{CallPoint, NeverFired, Strike};

/// One kill: after which call, and whether its answer was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub point: CallPoint,
    /// What its caller saw.
    pub strike: Strike,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({:?})", self.point, self.strike)
    }
}

/// Why a run proves nothing, or proves the manager wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The manager that came after the kill ended elsewhere.
    #[error("after {case} the final state differs\nexpected: {expected}\nfound: {found}")]
    Differs {
        case: Box<Case>,
        /// The end without faults.
        expected: String,
        /// The end after the kill.
        found: String,
    },
    /// The point to strike at was not reached.
    #[error(transparent)]
    NeverFired(Box<NeverFired>),
    /// The manager never came to rest.
    #[error("in {during} the manager did not converge; {calls} calls, writes: {seen}")]
    Restless {
        during: String,
        /// How many calls it made.
        calls: usize,
        seen: String,
    },
    /// The manager ended although it was not killed.
    #[error("in {during} the manager ended: {how}")]
    Ended {
        during: String,
        /// What became of it.
        how: String,
    },
    /// A run that was not struck rests where it must not end.
    #[error("without a strike the manager does not reach its final state; it converges to: {found}")]
    Unfinished { found: String },
    /// The run without faults made no write.
    #[error("the run without faults made no write: there is nothing to strike")]
    NothingToStrike,
    /// A manager's client could not be made.
    #[error("a manager's client could not be made")]
    Client(#[source] Box<hangar_kit::Error>),
    /// A manager's runtime could not be made.
    #[error("a manager's runtime could not be made")]
    Runtime(#[source] std::io::Error),
}

impl From<NeverFired> for Failure {
    fn from(never: NeverFired) -> Self {
        Self::NeverFired(Box::new(never))
    }
}

/// What became of the chosen cases.
#[derive(Debug)]
#[must_use = "failures are in it: see SweepReport::verdict"]
pub struct SweepReport {
    /// The writes of the run without faults, in order.
    pub points: Vec<CallPoint>,
    /// How many cases were chosen.
    pub chosen: usize,
    /// The cases that were tried, in order.
    pub tried: Vec<Case>,
    pub failures: Vec<(Case, Failure)>,
    /// Repeated writes that did not come again.
    pub unreached: Vec<Case>,
}

impl SweepReport {
    pub(super) fn new(points: &[CallPoint], chosen: usize) -> Self {
        Self {
            points: points.to_vec(),
            chosen,
            tried: Vec::new(),
            failures: Vec::new(),
            unreached: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, case: Case, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.failures.push((case.clone(), failure));
        }
        self.tried.push(case);
    }

    /// Chosen cases for which there was no time.
    pub fn left_out(&self) -> usize {
        self.chosen.saturating_sub(self.tried.len() + self.unreached.len())
    }

    /// An error with every failure, if there is one.
    pub fn verdict(&self) -> Result<(), String> {
        if self.failures.is_empty() {
            return Ok(());
        }
        let failures: Vec<String> =
            self.failures.iter().map(|(case, failure)| format!("- {case}: {failure}")).collect();
        Err(format!("{} of {self}:\n{}", failures.len(), failures.join("\n")))
    }
}

impl fmt::Display for SweepReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} cases at {} writes", self.tried.len(), self.points.len())?;
        for (count, what) in [
            (self.unreached.len(), "more at repetitions that did not come again"),
            (self.left_out(), "more left out for time"),
        ] {
            if count > 0 {
                write!(formatter, " ({count} {what})")?;
            }
        }
        Ok(())
    }
}
