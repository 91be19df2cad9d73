//! Users created on a machine; both versions have the same types.

use super::file::SecretKey;
use hangar_wire::wire;

/// A user account that the bootstrap data creates on the machine.
#[wire]
pub struct User {
    /// Comment field of the account, usually the full name.
    #[schemars(length(min = 1, max = 256))]
    pub gecos: Option<String>,
    /// Additional groups, separated by commas.
    #[schemars(length(min = 1, max = 256))]
    pub groups: Option<String>,
    /// Home directory of the account.
    #[schemars(length(min = 1, max = 256))]
    pub home_dir: Option<String>,
    /// Create the account without letting it log in.
    pub inactive: Option<bool>,
    /// Disable login with a password.
    pub lock_password: Option<bool>,
    /// Login name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Hash of the password.
    #[schemars(length(min = 1, max = 256))]
    pub passwd: Option<String>,
    /// Where to read the password hash from instead of `passwd`.
    pub passwd_from: Option<PasswdSource>,
    /// Primary group of the account.
    #[schemars(length(min = 1, max = 256))]
    pub primary_group: Option<String>,
    /// Login shell.
    #[schemars(length(min = 1, max = 256))]
    pub shell: Option<String>,
    /// Public keys that may log in by SSH.
    #[schemars(length(max = 100), inner(length(min = 1, max = 2048)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ssh_authorized_keys: Option<Vec<String>>,
    /// Sudo rule of the account, such as `ALL=(ALL) NOPASSWD:ALL`.
    #[schemars(length(min = 1, max = 256))]
    pub sudo: Option<String>,
}

/// Where the password hash of a user comes from.
#[wire]
pub struct PasswdSource {
    /// A key of a Secret in the namespace of the configuration.
    pub secret: SecretKey,
}
