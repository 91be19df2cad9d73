//! The namespaces whose objects a manager looks after.
//!
//! The choice decides what is watched, which rights the manager gets and where, and which writes the API server sends to
//! its webhooks. An object in another namespace is not ours: it is neither read nor written.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::label::is_label;

/// The longest name of a namespace.
const NAME_LIMIT: usize = 63;

/// The namespaces of a manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// All there are, and all that there will be.
    #[default]
    All,
    /// These; never empty.
    Only(BTreeSet<String>),
}

/// A text that names no namespaces.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamespacesError {
    #[error("{text:?} names no namespace")]
    Empty { text: String },
    #[error(
        "{name:?} is no name of a namespace: it has at most 63 characters, a-z, 0-9 and -, and neither begins nor ends \
         with -"
    )]
    Name { name: String },
}

impl Namespaces {
    /// The names, if only some are looked after.
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::All => None,
            Self::Only(names) => Some(names),
        }
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // No namespace can have this name.
            Self::All => formatter.write_str("*"),
            Self::Only(names) => {
                formatter.write_str(&names.iter().map(String::as_str).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl FromStr for Namespaces {
    type Err = NamespacesError;

    /// Reads names separated by commas. All namespaces have no text: they are what is meant where none is given.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            return Err(NamespacesError::Empty { text: text.to_owned() });
        }
        match names.iter().find(|name| !is_name(name)) {
            Some(name) => Err(NamespacesError::Name { name: name.clone() }),
            None => Ok(Self::Only(names)),
        }
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_LIMIT && is_label(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Namespaces>().map(|read| read.to_string());
        assert_eq!(read("b, a,b,"), Ok("a,b".to_owned()));
        assert_eq!(read("a"), Ok("a".to_owned()));
    }

    /// Nothing that was mistyped may mean all.
    #[test]
    fn what_names_nothing_is_refused() {
        let refused = |text: &str| text.parse::<Namespaces>().unwrap_err().to_string();
        assert_eq!(refused(""), "\"\" names no namespace");
        assert_eq!(refused(" , "), "\" , \" names no namespace");
        for name in ["*", "A", "a_b", "-a", "a-", "a.b", &"a".repeat(64)] {
            assert!(refused(&format!("ok,{name}")).starts_with(&format!("{name:?} is no name")), "{name}");
        }
    }
}
