//! A clouds.yaml from a Secret.

use hangar_openstack::CloudConfig;

pub(super) fn run(input: &[u8]) {
    // Whatever is wrong, the text that people see holds no secret of the file.
    const SECRET: &str = "sesame-open-sesame";
    if let Err(error) = CloudConfig::from_yaml(input, "openstack") {
        assert!(!format!("{error}").contains(SECRET), "an error quotes the file: {error}");
    }
}
