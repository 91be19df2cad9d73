//! What `hangar backup restore` does for people: it shows what a restore would do, and writes the field.

use hangar_api::controlplane::v1alpha1::{EtcdRestore, EtcdRestoreFrom, HostedControlPlane};
use hangar_plan::hosted_control_plane::data_to_replace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::people::{Fault, control_plane, name};
use super::{BackupId, Owner};

/// A restore that could be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The HostedControlPlane that gets the data.
    pub control_plane: String,
    /// What it would write.
    pub field: EtcdRestore,
    /// The data that is given up; nothing where there is none.
    pub replaces: Option<String>,
}

impl Proposal {
    /// What somebody still has to say, if anything: that they know which data is given up.
    pub fn lacks_consent(&self, consent: Option<&str>) -> Option<&str> {
        self.replaces.as_deref().filter(|replaces| consent != Some(replaces))
    }
}

/// What a restore of this backup would be.
pub async fn propose(
    client: &Client,
    (namespace, cluster): (&str, &str),
    (owner, id): ((&str, &str), &BackupId),
) -> Result<Proposal, Fault> {
    let control_plane = control_plane(client, namespace, cluster).await?;
    // Names that are none would be refused by the API server, and read by nobody.
    Owner::new(owner.0, owner.1)?;
    let replaces = data_to_replace(&control_plane).map_err(|error| Fault::Strange(error.to_string()))?;
    let from = (owner != (namespace, cluster))
        .then(|| EtcdRestoreFrom { namespace: owner.0.to_owned(), name: owner.1.to_owned() });
    let own = control_plane.spec.settings.etcd.as_ref().and_then(|etcd| etcd.restore.clone());
    let own = own.unwrap_or_default();
    let field = EtcdRestore {
        from,
        backup: Some(id.to_string()),
        member: None,
        before: None,
        // Where it is stays as it was said.
        secret: own.secret,
        encryption: own.encryption,
        replace: replaces.clone(),
    };
    Ok(Proposal { control_plane: name(&control_plane), field, replaces })
}

/// Asks for it.
pub async fn restore(client: &Client, namespace: &str, proposal: &Proposal) -> Result<(), Fault> {
    let api: Api<HostedControlPlane> = Api::namespaced(client.clone(), namespace);
    let EtcdRestore { from, backup, member, before: _, secret: _, encryption: _, replace } = &proposal.field;
    // What is not asked for any more has to go.
    let field = json!({"from": from, "backup": backup, "member": member, "before": null, "replace": replace});
    let fields = json!({"spec": {"etcd": {"restore": field}}});
    let written = api.patch(&proposal.control_plane, &PatchParams::default(), &Patch::Merge(fields)).await;
    let what = format!("HostedControlPlane {}", proposal.control_plane);
    written.map(drop).map_err(|error| Fault::Write { what, source: Box::new(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consent_names_the_data_that_is_given_up() {
        let proposal = |replaces: Option<&str>| Proposal {
            control_plane: "shop".to_owned(),
            field: EtcdRestore::default(),
            replaces: replaces.map(str::to_owned),
        };
        assert_eq!(proposal(None).lacks_consent(None), None);
        for consent in [None, Some(""), Some("shop"), Some("shop/2"), Some("yes")] {
            assert_eq!(proposal(Some("shop/1")).lacks_consent(consent), Some("shop/1"), "{consent:?}");
        }
        assert_eq!(proposal(Some("shop/1")).lacks_consent(Some("shop/1")), None);
    }
}
