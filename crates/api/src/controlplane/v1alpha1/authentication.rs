//! Identity providers whose tokens the API server accepts.

use hangar_wire::wire;

/// An identity provider. Its key in the map is its issuer URL.
#[wire]
pub struct OidcProvider {
    /// Certificate authorities in PEM for the issuer; the system's when empty.
    #[schemars(length(max = 65536))]
    pub certificate_authority: Option<String>,
    /// Accepted audiences; a token must be issued for one of them.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "set"))]
    pub audiences: Vec<String>,
    /// Further checks of a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// How the claims of a token become a user and groups.
    pub claim_mappings: ClaimMappings,
}

/// A check of a token's claims.
#[wire]
pub struct ClaimValidationRule {
    /// CEL expression over `claims` that must be true.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// Message when the expression is not true.
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
}

/// How the claims of a token become a user and groups.
#[wire]
pub struct ClaimMappings {
    /// CEL expression over `claims` that gives the user's name. With `claims.email` a check of `claims.email_verified` is
    /// needed, here or in `claimValidationRules`.
    #[schemars(length(min = 1, max = 4096))]
    pub username: String,
    /// CEL expression over `claims` that gives the groups, such as `claims.groups` or `dyn(claims.groups).map(g, 'oidc:' + g)`.
    #[schemars(length(max = 4096))]
    pub groups: Option<String>,
}
