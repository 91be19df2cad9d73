//! Settings of programs that read a file and ignore flags beside it: what users give as a flag becomes a field of the
//! file, of the file's type. A program does not start with another type, and ignores a field that it does not know
//! without a word; so both are refused.

use serde_json::{Value, json};

/// The types of fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    /// As text, such as `5s`.
    Duration,
    /// Names of features, each true or false.
    Features,
    /// Separated by commas.
    List,
    /// A duration as a number.
    Nanoseconds,
    Number,
    /// One of some words.
    OneOf(&'static [&'static str]),
    Switch,
    Text,
    Unsigned,
    Whole,
}

impl Type {
    /// The field's value, or why it is none.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let switch = |text: &str| text.trim().parse::<bool>().ok().map(|switch| json!(switch));
        let duration = || {
            let duration = text.parse::<kube::core::Duration>().ok().filter(|given| !given.is_negative());
            duration.map(std::time::Duration::from)
        };
        let (value, misread) = match self {
            Self::Duration => (duration().map(|_| json!(text)), "it is no duration, such as 5s"),
            Self::Nanoseconds => {
                let count = duration().and_then(|duration| u64::try_from(duration.as_nanos()).ok());
                (count.map(|count| json!(count)), "it is no duration, such as 5s")
            }
            Self::Features => {
                let feature = |part: &str| {
                    let (name, is_on) = part.split_once('=')?;
                    Some((name.trim().to_owned(), switch(is_on)?))
                };
                let all = parts().map(feature).collect::<Option<serde_json::Map<_, _>>>();
                (all.map(Value::Object), "it is no list of features, such as A=true,B=false")
            }
            Self::List => (Some(parts().collect()), ""),
            Self::Number => {
                let number = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
                (number.map(Value::Number), "it is no number")
            }
            Self::OneOf(words) if words.contains(&text) => (Some(json!(text)), ""),
            Self::OneOf(words) => return Err(format!("it is none of {}", words.join(", "))),
            Self::Switch => (switch(text), "it is neither true nor false"),
            Self::Text => (Some(json!(text)), ""),
            Self::Unsigned => {
                (text.parse::<u64>().ok().map(|number| json!(number)), "it is no whole number of 0 or more")
            }
            Self::Whole => (text.parse::<i64>().ok().map(|number| json!(number)), "it is no whole number"),
        };
        value.ok_or_else(|| misread.to_owned())
    }
}
