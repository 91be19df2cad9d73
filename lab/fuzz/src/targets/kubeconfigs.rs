//! A kubeconfig from a Secret.

use hangar_pki::Kubeconfig;

pub(super) fn run(input: &[u8]) {
    // Whatever is wrong, the text that people see holds no secret of the file.
    const SECRET: &str = "sesame-open-sesame";
    let Some(text) = super::text(input) else { return };
    if let Err(error) = Kubeconfig::read(text) {
        assert!(!error.to_string().contains(SECRET), "an error quotes the file: {error}");
    }
}
