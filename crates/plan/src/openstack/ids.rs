//! Ids that a cloud gives out: a type each, so that a port's id cannot be passed as a network's.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        /// As the text alone: the field says of what it is.
        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// Of a flavor. Free text: operators choose it.
    FlavorId,
    ImageId,
    NetworkId,
    PortId,
    RouterId,
    SecurityGroupId,
    SecurityGroupRuleId,
    ServerGroupId,
    ServerId,
    SubnetId,
}
