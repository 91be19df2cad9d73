//! Tests what `#[wire]` promises.

use hangar_wire::wire;
use serde_json::json;

#[wire]
struct Strict {
    node_name: String,
    provider_id: Option<String>,
    #[serde(rename = "apiServerIP")]
    api_server_ip: std::option::Option<String>,
}

#[wire(lenient)]
struct Lenient {
    node_name: String,
    provider_id: Option<String>,
}

/// The ways there are.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Way {
    /// Over land.
    Road,
    /// Over water.
    Ferry,
}

#[wire]
struct Described {
    /// How it gets there.
    way: Option<Way>,
    other: Option<Way>,
}

#[test]
fn a_field_is_described_by_its_own_comment_or_by_that_of_its_type() {
    let settings =
        schemars::generate::SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Described>();
    let descriptions = |field: &str| {
        let outer = schema.pointer(&format!("/properties/{field}/description")).cloned();
        (outer, schema.pointer(&format!("/properties/{field}/anyOf/0/description")).cloned())
    };
    assert_eq!(descriptions("way"), (Some(json!("How it gets there.")), None));
    assert_eq!(descriptions("other"), (None, Some(json!("The ways there are."))));
}

#[test]
fn an_optional_field_that_is_not_set_is_left_out() {
    assert_eq!(serde_json::to_value(Strict::default()).unwrap(), json!({ "nodeName": "" }));
}

#[test]
fn a_field_keeps_the_attributes_it_brings() {
    let strict = Strict { api_server_ip: Some("10.0.0.1".to_owned()), ..Strict::default() };
    let expected = json!({ "nodeName": "", "apiServerIP": "10.0.0.1" });
    assert_eq!(serde_json::to_value(&strict).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Strict>(expected).unwrap(), strict);
}

#[test]
fn only_a_lenient_struct_is_read_without_its_required_fields() {
    assert!(serde_json::from_value::<Strict>(json!({})).is_err());
    assert_eq!(serde_json::from_value::<Lenient>(json!({})).unwrap(), Lenient::default());
}

#[test]
fn the_schema_demands_required_fields_in_either_case() {
    for schema in [schemars::schema_for!(Strict), schemars::schema_for!(Lenient)] {
        assert_eq!(schema.get("required"), Some(&json!(["nodeName"])));
    }
}
