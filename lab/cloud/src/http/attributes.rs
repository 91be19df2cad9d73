//! Reads the attributes of a body one by one: an unknown attribute is refused, as Neutron and Nova do.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::model::Refusal;

/// Attributes that were given.
pub(crate) struct Attributes(Map<String, Value>);

impl Attributes {
    pub(crate) fn new(map: Map<String, Value>) -> Self {
        Self(map)
    }

    /// Takes an attribute as it is.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Takes a text; null counts as not given.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.chars().count() <= 255 || name == "description" => {
                Ok(Some(text))
            }
            Some(Value::String(text)) => {
                Err(Refusal::attribute(name, format_args!("'{text}' exceeds maximum length of 255")))
            }
            Some(other) => Err(Refusal::attribute(name, format_args!("'{other}' is not a valid string"))),
        }
    }

    pub(crate) fn boolean(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        let value = self.take(name);
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(other) => {
                Err(Refusal::attribute(name, format_args!("'{other}' cannot be converted to boolean")))
            }
        }
    }

    pub(crate) fn number<T: TryFrom<u64>>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        let value = match self.take(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or_else(|| Refusal::attribute(name, format_args!("'{value}' is not an integer")))
    }

    pub(crate) fn uuid(&mut self, name: &str) -> Result<Option<Uuid>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        uuid(name, &text).map(Some)
    }

    pub(crate) fn address(&mut self, name: &str) -> Result<Option<IpAddr>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        address(name, &text).map(Some)
    }

    /// Takes a list of texts.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let items = match self.take(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(Refusal::attribute(name, format_args!("'{other}' is not a list"))),
        };
        let texts = items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect::<Option<Vec<_>>>();
        texts.map(Some).ok_or_else(|| Refusal::attribute(name, "an item is not a valid string"))
    }

    /// Takes a list of objects.
    pub(crate) fn objects(&mut self, name: &str) -> Result<Option<Vec<Attributes>>, Refusal> {
        let items = match self.take(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(Refusal::attribute(name, format_args!("'{other}' is not a list"))),
        };
        let one = |item| match item {
            Value::Object(map) => Ok(Attributes(map)),
            other => Err(Refusal::attribute(name, format_args!("'{other}' is not a dictionary"))),
        };
        items.into_iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    /// Refuses what was not taken.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        Err(Refusal::bad(format!("Unrecognized attribute(s) '{}'", names.join(", "))))
    }
}

/// Takes over what was given; what was not stays as it is.
pub(crate) fn assign<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

pub(crate) fn uuid(name: &str, text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::attribute(name, format_args!("'{text}' is not a valid UUID")))
}

pub(crate) fn address(name: &str, text: &str) -> Result<IpAddr, Refusal> {
    text.parse().map_err(|_| Refusal::attribute(name, format_args!("'{text}' is not a valid IP address")))
}

/// A range; a single address where that is allowed.
pub(crate) fn range(name: &str, text: &str, address_allowed: bool) -> Result<IpNet, Refusal> {
    let single = || text.parse::<IpAddr>().ok().filter(|_| address_allowed).map(IpNet::from);
    let range = text.parse().ok().or_else(single);
    range.ok_or_else(|| Refusal::attribute(name, format_args!("'{text}' is not a valid IP subnet")))
}
