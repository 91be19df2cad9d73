//! `#[wire]`: what every struct of the API has in common, in one attribute.
//!
//! - It derives `Clone`, `Debug`, `Default`, `PartialEq`, `Serialize`, `Deserialize` and `JsonSchema`.
//! - Its fields are named in camelCase.
//! - An optional field that is not set is left out. The API server would refuse a `null`, and with server-side apply we
//!   would own the field. The attribute does that for all fields, because it would be easy to forget for one.
//! - A field's own doc comment describes it in the schema, not that of its type. For an optional enum schemars keeps
//!   both, and the derive macro of custom resources would prefer the type's.
//!
//! `#[wire(lenient)]` also reads a missing required field as its default. The schema still demands the field: a
//! conversion has to read what an older schema allowed, but the API server need not admit it.
//!
//! `#[wire(without_default)]` derives no `Default`: there is none, or it is written by hand.
//!
//! Further attributes of serde, schemars and kube stand below it and have their usual meaning.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Type, parse_macro_input, parse_quote};

/// Makes a struct one of the API's; see the head of this crate.
#[proc_macro_attribute]
pub fn wire(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as DeriveInput);
    let variant = match arguments.to_string().as_str() {
        "" => quote!(#[derive(Default)]),
        "lenient" => quote!(#[derive(Default)] #[serde(default)] #[schemars(!default)]),
        "without_default" => quote!(),
        _ => return refusal(&item, "one of #[wire], #[wire(lenient)], #[wire(without_default)]"),
    };
    let Data::Struct(data) = &mut item.data else {
        return refusal(&item, "#[wire] is for structs");
    };
    for field in data.fields.iter_mut().filter(|field| is_option(&field.ty)) {
        field.attrs.push(parse_quote!(#[serde(skip_serializing_if = "Option::is_none")]));
    }
    quote! {
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(transform = |schema: &mut ::schemars::Schema| {
            let fields = schema.get_mut("properties").and_then(|fields| fields.as_object_mut());
            for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
                if field.get("description").is_some()
                    && let Some(inner) = field.pointer_mut("/anyOf/0").and_then(|inner| inner.as_object_mut())
                {
                    inner.remove("description");
                }
            }
        })]
        #variant
        #item
    }
    .into()
}

fn is_option(type_: &Type) -> bool {
    matches!(type_, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

fn refusal(item: &DeriveInput, message: &str) -> TokenStream {
    syn::Error::new_spanned(&item.ident, message).into_compile_error().into()
}
