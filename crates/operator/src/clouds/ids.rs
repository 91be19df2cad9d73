//! Ids of plans as ids of the client and back: each has one counterpart, so none becomes that of another kind.

use hangar_openstack as cloud;
use hangar_plan::openstack as plan;

pub(crate) trait CloudId {
    /// The client's type.
    type Cloud;

    fn from_cloud(id: &Self::Cloud) -> Self;

    fn to_cloud(&self) -> Self::Cloud;
}

macro_rules! ids {
    ($($name:ident,)*) => {$(
        impl CloudId for plan::$name {
            type Cloud = cloud::$name;

            fn from_cloud(id: &cloud::$name) -> Self {
                id.as_str().into()
            }

            fn to_cloud(&self) -> cloud::$name {
                self.as_str().into()
            }
        }
    )*};
}

ids! {
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
