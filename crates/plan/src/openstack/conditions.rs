//! Reasons that the conditions of OpenStackClusters and OpenStackMachines share.

/// What may be wrong with the cloud or the way to it. Calls that did not work are said with these as well.
pub mod cloud {
    use crate::conditions::reasons;

    reasons! {
        "", Positive;
        bad CREDENTIALS_NOT_FOUND = "CredentialsNotFound" [OWNER]: "The Secret with the credentials does not exist, or identityRef is not set.";
        bad CREDENTIALS_UNREADABLE = "CredentialsUnreadable" [OPERATOR]: "The Secret with the credentials cannot be read.";
        bad CREDENTIALS_INVALID = "CredentialsInvalid" [OWNER]: "The Secret has no key clouds.yaml, the file has no such cloud, or it cannot be parsed.";
        bad INVALID_CLOUDS_YAML = "InvalidCloudsYaml" [OWNER]: "The entry of clouds.yaml cannot be used.";
        bad UNSUPPORTED = "Unsupported" [OWNER]: "A field is set that is not supported yet; the message names it.";
        bad UNAUTHORIZED = "Unauthorized" [OWNER]: "Keystone refuses the credentials.";
        bad FORBIDDEN = "Forbidden" [OWNER]: "The credentials do not allow the call.";
        bad NO_ENDPOINT = "NoEndpoint" [OWNER]: "The catalogue has no such service in this region.";
        bad CLOUD_UNREACHABLE = "CloudUnreachable" [CLOUD]: "The service cannot be reached.";
        bad CLOUD_TIMEOUT = "CloudTimeout" [CLOUD]: "The service does not answer in time.";
        bad CLOUD_BUSY = "CloudBusy" [CLOUD]: "Another call is changing the same subnet or network at the moment. Hangar tries again.";
        bad CLOUD_UNAVAILABLE = "CloudUnavailable" [CLOUD]: "The service answers that it is not available.";
        bad CLOUD_ERROR = "CloudError" [CLOUD]: "The service answers with an internal error.";
        bad RATE_LIMITED = "RateLimited" [CLOUD]: "The service asks for fewer calls.";
        bad UNEXPECTED_ANSWER = "UnexpectedAnswer" [CLOUD, OWNER]: "The answer is not one that the service gives; perhaps another program answers.";
        bad UNEXPECTED_STATUS = "UnexpectedStatus" [CLOUD, OWNER]: "The service answers with a status that Hangar does not expect for this call.";
        bad NO_SUCH_PATH = "NoSuchPath" [OWNER, CLOUD]: "The service does not know the path: the service's URL in the cloud's catalogue, or `auth_url`, is wrong.";
        bad OPENSTACK_REFUSED = "OpenStackRefused" [OWNER]: "The cloud refused a call because of a quota or a policy, or because the object is in use. The condition repeats its message.";
        bad INVALID_SPECIFICATION = "InvalidSpecification" [OWNER]: "An address or a range in the specification is not valid; the message names the field.";
        bad ANSWER_LOST = "AnswerLost" [HANGAR]: "No answer came to a call. Everything is read again before the next call.";
        bad OUTDATED = "Outdated" [HANGAR]: "The state that a call was planned from has changed. Everything is read again before the next call.";
        bad STOPPED = "Stopped" [HANGAR]: "A call to the cloud was not sent: this manager is no longer the leader, or the lease would have ended before the call did.";
        bad NOT_SENT = "NotSent" [HANGAR]: "A call to the management cluster was not sent, for one of the causes of `Stopped`.";
        bad CALL_FAILED = "CallFailed" [CLOUD, HANGAR, OWNER]: "A call failed in another way; the message says how.";
    }

    /// The reason with the name that an error has. Errors of the management cluster have names of their own, which say
    /// no more than their messages.
    pub fn named(category: &str) -> Bad {
        let declared = ALL.iter().find(|reason| reason.name == category);
        declared.map_or(CALL_FAILED, |reason| Bad::declare(*reason))
    }
}

/// Whose the object and what is in the cloud are.
pub(crate) mod ownership {
    crate::conditions::reasons! {
        "", Positive;
        bad STARTING = "Starting" [HANGAR]: "Hangar is about to write the owner id and the finalizer.";
        bad OWNER_ID_COPIED = "OwnerIdCopied" [OWNER]: "The object was copied together with its owner id: nothing is created or deleted for it.";
        bad OTHER_PROJECT = "OtherProject" [OWNER]: "The credentials lead to another project or region than the one that is recorded for the object: nothing is created, deleted or released.";
        bad MADE_BY_ANOTHER = "MadeByAnotherProvider" [OWNER]: "The status or the provider id names things in the cloud, and the object has no owner id of Hangar: nothing is created, deleted or released.";
        bad DELETING = "Deleting" [HANGAR, CLOUD]: "The object is being deleted; the message names what still exists.";
    }
}

/// Calls about a server that were refused.
pub(crate) mod server {
    crate::conditions::reasons! {
        "", Positive;
        bad PORT_CREATE_FAILED = "PortCreateFailed" [OWNER]: "The cloud refused to create a port; the condition repeats its message.";
        bad INSTANCE_CREATE_FAILED = "InstanceCreateFailed" [OWNER]: "The cloud refused to create the server; the condition repeats its message.";
        bad INSTANCE_DELETE_FAILED = "InstanceDeleteFailed" [OWNER]: "The cloud refused to delete the server or a port; the condition repeats its message.";
        bad OBJECT_NOT_WRITTEN = "ObjectNotWritten" [OWNER]: "The management cluster refused a change of the object; the condition repeats its message.";
    }
}
