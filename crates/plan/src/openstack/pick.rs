//! Picks one of several cloud objects: a create whose answer was lost may have happened twice.

use crate::flow::Read;

/// What there is of something that there ought to be one of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked<T> {
    /// Nothing may be concluded.
    Unknown(String),
    None,
    /// This is the one; the others are too many.
    One(T, Vec<T>),
}

/// Picks the one with the preferred id, else the one with the lowest: every run picks the same.
pub fn pick<T: Clone, I: Ord>(read: &Read<T>, id: impl Fn(&T) -> &I, preferred: Option<&I>) -> Picked<T> {
    let mut all: Vec<T> = match read {
        Read::Unknown(unknown) => return Picked::Unknown(unknown.why.clone()),
        Read::Absent => return Picked::None,
        Read::One(one) => return Picked::One(one.clone(), Vec::new()),
        Read::Many(many) => many.clone(),
    };
    all.sort_by(|left, right| id(left).cmp(id(right)));
    let position = preferred.and_then(|wanted| all.iter().position(|item| id(item) == wanted)).unwrap_or(0);
    let kept = all.remove(position);
    Picked::One(kept, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_picks_the_same() {
        fn id<'a>(text: &'a &'static str) -> &'a &'static str {
            text
        }
        let read = |items: &[&'static str]| Read::found(items.iter().copied());
        assert_eq!(pick(&read(&["b", "a"]), id, None), Picked::One("a", vec!["b"]));
        assert_eq!(pick(&read(&["b", "a"]), id, Some(&"b")), Picked::One("b", vec!["a"]));
        assert_eq!(pick(&read(&["b", "a"]), id, Some(&"c")), Picked::One("a", vec!["b"]));
        assert_eq!(pick(&read(&[]), id, Some(&"c")), Picked::None);
        assert_eq!(pick(&Read::unknown("no"), id, None), Picked::Unknown("no".to_owned()));
    }
}
