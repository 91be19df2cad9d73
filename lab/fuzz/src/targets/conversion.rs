//! Objects of one API version that are wanted in the other.

use hangar_api::conversion::{NoVersions, convert};
use serde_json::Value;

pub(super) fn run(input: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(input) else { return };
    for version in ["v1beta1", "v1beta2", "v1alpha1"] {
        let Some((group, _)) = object["apiVersion"].as_str().and_then(|version| version.split_once('/'))
        else {
            return;
        };
        let Ok(there) = convert(object.clone(), &format!("{group}/{version}"), &NoVersions) else { continue };
        // What was converted once can be converted for ever, and does not drift.
        let Some(own) = object["apiVersion"].as_str() else { return };
        let Ok(back) = convert(there.clone(), own, &NoVersions) else {
            panic!("converted there and not back: {there}");
        };
        let Ok(again) = convert(back, &format!("{group}/{version}"), &NoVersions) else {
            panic!("converted back and not there again");
        };
        let Ok(third) = convert(again.clone(), own, &NoVersions)
            .and_then(|back| convert(back, &format!("{group}/{version}"), &NoVersions))
        else {
            panic!("converted twice and not thrice");
        };
        assert_eq!(again, third, "each conversion changes the object");
    }
}
