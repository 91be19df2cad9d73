//! Text from outside, made fit for errors and conditions.

/// Longer ones are cut: an error is read by people.
const LONGEST: usize = 300;

/// One line without control characters, of limited length.
pub(crate) fn clean(text: &str) -> String {
    let one_line = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut cleaned: String = one_line.take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        cleaned.push('…');
    }
    cleaned.trim().to_owned()
}

/// The chain of causes in one line, without repetitions.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    // Nobody's chain is that long; one that has no end must not hang us.
    let mut parts: Vec<String> = chain.take(16).map(ToString::to_string).collect();
    parts.dedup();
    // Many errors end in the text of their source.
    let mut words: Vec<&str> = Vec::new();
    for part in &parts {
        if !words.iter().any(|word| word.contains(part.as_str())) {
            words.push(part);
        }
    }
    clean(&words.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_outside_is_one_short_line() {
        assert_eq!(clean(" a\nb\u{1b}[1m "), "a b [1m");
        assert_eq!(clean(&"x".repeat(5000)).chars().count(), LONGEST + 1);
        assert_eq!(clean(&"é".repeat(LONGEST)), "é".repeat(LONGEST));
    }
}
