//! Reasons that the conditions of both kinds share.

/// What may be wrong with the cloud or the way to it. Calls that did not work are said with these as well.
pub mod cloud {
    use crate::conditions::reasons;

    reasons! {
        "", Positive;
        bad CREDENTIALS_NOT_FOUND = "CredentialsNotFound" [OWNER]: "The Secret with the credentials does not exist, or none is named.";
        bad CREDENTIALS_UNREADABLE = "CredentialsUnreadable" [OPERATOR]: "The Secret with the credentials cannot be read.";
        bad CREDENTIALS_INVALID = "CredentialsInvalid" [OWNER]: "The Secret has no usable clouds.yaml, or no such cloud in it.";
        bad INVALID_CLOUDS_YAML = "InvalidCloudsYaml" [OWNER]: "The entry of clouds.yaml cannot be used.";
        bad UNSUPPORTED = "Unsupported" [OWNER]: "A field is given that is not built yet; it is named.";
        bad UNAUTHORIZED = "Unauthorized" [OWNER]: "Keystone refuses the credentials.";
        bad FORBIDDEN = "Forbidden" [OWNER]: "The credentials do not allow it.";
        bad NO_ENDPOINT = "NoEndpoint" [OWNER]: "The catalogue has no such service in this region.";
        bad CLOUD_UNREACHABLE = "CloudUnreachable" [CLOUD]: "The service cannot be reached.";
        bad CLOUD_TIMEOUT = "CloudTimeout" [CLOUD]: "The service does not answer in time.";
        bad CLOUD_UNAVAILABLE = "CloudUnavailable" [CLOUD]: "The service says that it is not available.";
        bad CLOUD_ERROR = "CloudError" [CLOUD]: "The service answers with an error of its own.";
        bad RATE_LIMITED = "RateLimited" [CLOUD]: "The service wants fewer calls.";
        bad UNEXPECTED_ANSWER = "UnexpectedAnswer" [CLOUD, OWNER]: "What answers is not the service, or not as it should.";
        bad UNEXPECTED_STATUS = "UnexpectedStatus" [CLOUD, OWNER]: "The service answers with a status that means nothing here.";
        bad NO_SUCH_PATH = "NoSuchPath" [OWNER, CLOUD]: "The service does not know the path: the endpoint is wrong.";
        bad OPENSTACK_REFUSED = "OpenStackRefused" [OWNER]: "The cloud refused a call: quota, policy, in use. Its message follows.";
        bad INVALID_SPECIFICATION = "InvalidSpecification" [OWNER]: "An address or a range in the specification cannot be read; the field is named.";
        bad ANSWER_LOST = "AnswerLost" [HANGAR]: "No answer came to a call: everything is read again before the next.";
        bad OUTDATED = "Outdated" [HANGAR]: "What a call was planned from has changed: everything is read again before the next.";
        bad STOPPED = "Stopped" [HANGAR]: "A call was not sent: the lease would have ended before it.";
        bad NOT_SENT = "NotSent" [HANGAR]: "A call was not sent: this manager leads no longer, or the lease would have ended before it.";
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
        bad STARTING = "Starting" [HANGAR]: "Owner id and finalizer are being written.";
        bad OWNER_ID_COPIED = "OwnerIdCopied" [OWNER]: "The object was copied with its owner id: nothing is made or deleted for it.";
        bad DELETING = "Deleting" [HANGAR, CLOUD]: "It is being deleted; the message names what is left.";
    }
}

/// Calls about a server that were refused.
pub(crate) mod server {
    crate::conditions::reasons! {
        "", Positive;
        bad PORT_CREATE_FAILED = "PortCreateFailed" [OWNER]: "The cloud refused a port; its message follows.";
        bad INSTANCE_CREATE_FAILED = "InstanceCreateFailed" [OWNER]: "The cloud refused the server; its message follows.";
        bad INSTANCE_DELETE_FAILED = "InstanceDeleteFailed" [OWNER]: "The cloud refused to delete the server or a port; its message follows.";
        bad OBJECT_NOT_WRITTEN = "ObjectNotWritten" [OWNER]: "The management cluster refused a change of the object; its message follows.";
    }
}
