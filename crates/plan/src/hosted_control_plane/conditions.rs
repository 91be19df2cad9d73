//! The conditions of a HostedControlPlane.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether the control plane can be used.
    available = "Available", Positive, Own {
        good AVAILABLE = "Available": "An API server is ready, etcd has a quorum and tells of no alarm, the endpoint is known, and there is or was a kubeconfig.";
        bad NO_API_SERVER = "NoAPIServer" [MANAGEMENT_CLUSTER]: "No API server pod is ready.";
        bad NO_QUORUM = "NoQuorum" [MANAGEMENT_CLUSTER]: "Fewer than a majority of the etcd members are ready.";
        bad ETCD_ALARM = "EtcdAlarm" [OPERATOR]: "etcd refuses writes because of an alarm, which EtcdClusterHealthy names.";
        bad NO_ENDPOINT = "NoEndpoint" [OPERATOR, OWNER, MANAGEMENT_CLUSTER, HANGAR]: "API servers are ready, but no endpoint is known.";
        bad NO_KUBECONFIG = "NoKubeconfig" [HANGAR, MANAGEMENT_CLUSTER]: "The API server serves, but the administrator has no rights in the tenant yet, and so no kubeconfig.";
        ..nothing_done;
        ..not_rendered;
        ..shared::reads;
    }

    /// Whether the control plane is complete: a summary of CertificatesValid, EtcdClusterHealthy, APIServerReady,
    /// ControllersReady and EndpointReady, and of AddonsReady while an add-on does not run though there are Nodes.
    ready = "Ready", Positive, Merged {
        bad OBJECT_REFUSED = "ObjectRefused" [OPERATOR]: "The management cluster refused an object; the condition repeats its message.";
        ..nothing_done;
        ..not_rendered;
    }

    /// Whether the specification can be rendered.
    specification_valid = "SpecificationValid", Positive, Own {
        good VALID = "Valid": "The specification can be rendered.";
        ..not_rendered;
    }

    /// Whether every setting has an effect. Exists only if a setting has none.
    settings_effective = "SettingsEffective", Positive, Own {
        bad SOURCE_MISSING = "SourceMissing" [OWNER]: "A ConfigMap or a Secret that a setting names does not exist, or has not the key; the message names the field. While it is for a mount, nothing of the API server is changed; while it is the token of an audit receiver, that receiver gets no records.";
        bad IGNORED = "Ignored" [OWNER]: "Some settings are ignored: flags that the control plane needs for itself, values that were fixed when it was made, or objects of a kind that the management cluster does not have. The message names each with its reason.";
    }

    /// Whether all keys and certificates exist and are valid.
    certificates_valid = "CertificatesValid", Positive, Own {
        good VALID = "Valid": "All keys and certificates exist and are valid.";
        bad KEY_LOST = "KeyLost" [OPERATOR]: "A key without which stored data cannot be read, or nodes and users are not recognised, is gone, or another one is in its place; the message names its Secret. Hangar does not create a new one.";
        bad RESTORING = "Restoring" [HANGAR]: "A Secret with a key that cannot be replaced was deleted. Hangar creates it again with the same content.";
        bad NAME_TAKEN = "NameTaken" [OWNER]: "A Secret with a required name belongs to another owner.";
        bad UNUSABLE = "Unusable" [OWNER]: "A Secret that a user created or changed cannot be used; the message names it and the error.";
        bad EXPIRED = "Expired" [OPERATOR]: "A certificate authority has expired, and with it every certificate that it signed.";
        bad EDITED = "Edited" [HANGAR]: "A kubeconfig that Hangar minted was changed afterwards; the message names the Secret and the field. Hangar does not use it, and mints it again.";
        bad CLOCKS_DISAGREE = "ClocksDisagree" [OPERATOR]: "Keys or certificates are missing or due, and the clock of Hangar's host differs from that of the management cluster's API server by more than 5 minutes. Nothing is minted or renewed.";
        bad MINTING = "Minting" [HANGAR]: "Hangar is creating keys. The message includes the last failure, if any.";
        ..shared::reads;
    }

    /// Whether certificate authorities last. Exists only if more than half of the validity of one is over.
    authorities_lasting = "AuthoritiesLasting", Positive, Own {
        bad ENDING = "Ending" [OPERATOR]: "More than half of an authority's validity is over; the message says which ends when. Hangar does not replace authorities yet: when one ends, so does the control plane.";
    }

    /// Whether etcd has a quorum and accepts writes.
    etcd_cluster_healthy = "EtcdClusterHealthy", Positive, Own {
        good ALL_READY = "AllReady": "All members are ready.";
        good QUORUM = "Quorum": "etcd has a quorum, but a member is not ready.";
        bad NOT_CREATED = "NotCreated" [HANGAR]: "The StatefulSet does not exist yet, or was deleted and is created again with the volumes that exist.";
        bad NO_QUORUM = "NoQuorum" [MANAGEMENT_CLUSTER]: "Fewer than a majority of the etcd members are ready.";
        bad NO_SPACE = "NoSpace" [OPERATOR, HANGAR, MANAGEMENT_CLUSTER]: "The database of a member has reached its quota (alarm NOSPACE). etcd refuses writes until there is room again. Hangar waits for volumes that grow, defragments members where that gives room, and ends the alarm when all have room; the message says what is next, or what only people can do. It names the members that report it.";
        bad CORRUPT = "Corrupt" [OPERATOR]: "Members have different data (alarm CORRUPT). etcd refuses writes until the member with the wrong data is replaced and the alarm is disarmed. The message names the members that report it.";
        bad RESTORING = "Restoring" [HANGAR]: "etcd does not run, because it is being restored; EtcdRestored says how far that is.";
        bad MEMBER_FAILING = "MemberFailing" [OPERATOR]: "etcd has a quorum, but a member finds no node or does not start; the message names it and the error.";
        bad REPLACING_MEMBER = "ReplacingMember" [HANGAR, MANAGEMENT_CLUSTER]: "The volume of a member was deleted or is being deleted; the message names its claim. The others form a quorum, and Hangar replaces the member: it is removed from etcd, added again, and gets its data from the others. The message names the step.";
        bad MEMBER_LOST = "MemberLost" [OPERATOR]: "The volume of a member was deleted or is being deleted; the message names its claim. The member does not start without its data. The others form a quorum, so nothing else is lost, but Hangar cannot replace the member; the message says what keeps it.";
        bad DATA_LOST = "DataLost" [OPERATOR]: "The volumes of so many members were deleted that no quorum has its data. etcd is not started again, because it would be empty, or would have forgotten what it acknowledged. The message names what people can do.";
        bad VOLUMES_FOUND = "VolumesFound" [OPERATOR]: "Before the first start there are claims with the names of etcd's, of a control plane that had this name before. etcd is not started with data of another control plane.";
        ..shared::reads;
    }

    /// Whether etcd's volumes are as large as wanted, and used. Exists only while they are not; neither Ready nor Available
    /// depends on it.
    etcd_volumes_sized = "EtcdVolumesSized", Positive, Own {
        bad GROWING = "Growing" [MANAGEMENT_CLUSTER, HANGAR]: "The claim of a member asks for more, and the storage class's driver or kubelet has not made the volume and its file system larger yet; the message names it. Claims grow one after the other.";
        bad NOT_EXPANDABLE = "NotExpandable" [OPERATOR]: "The management cluster refuses to let a claim grow, most often because its storage class cannot expand volumes; the message repeats what it says. Nothing else waits. Hangar tries again about every minute.";
        bad FAILING = "Failing" [OPERATOR]: "The storage class's driver or kubelet cannot make a volume larger; the message repeats what it says.";
        bad QUOTA_BEHIND = "QuotaBehind" [HANGAR, MANAGEMENT_CLUSTER]: "All volumes are larger, and members are restarted, one at a time, to use them; the message says how many are, and what keeps the next one.";
        bad AT_LIMIT = "AtLimit" [OWNER]: "`spec.etcd.autoGrow` is set, and etcd's databases are nearly full, but a larger volume would not help: etcd's quota is 8Gi at most. Delete objects in the tenant.";
    }

    /// Whether backups of etcd are made when they are due. Exists only if `spec.etcd.backup` is set; neither Ready nor
    /// Available depends on it.
    etcd_backed_up = "EtcdBackedUp", Positive, Own {
        good UP_TO_DATE = "UpToDate": "The last backup that was due is in the bucket, or is being made.";
        bad NONE_YET = "NoneYet" [HANGAR, MANAGEMENT_CLUSTER, OPERATOR]: "There is no backup yet. The first one is made as soon as etcd has started.";
        bad LATE = "Late" [HANGAR, MANAGEMENT_CLUSTER, OPERATOR]: "A backup is due and waits for etcd; the message says for what. It is made up for once.";
        bad SECRET_UNUSABLE = "SecretUnusable" [OWNER]: "The Secret of the store, or the one with the key that encrypts backups, does not exist or cannot be used; the message says why. Hangar tries again, at first after a minute and then ever more rarely, at least once an hour.";
        bad STORE_FAILING = "StoreFailing" [OWNER, OPERATOR]: "The store cannot be reached or refuses; the message repeats what it says. Hangar tries again, at first after a minute and then ever more rarely, at least once an hour. Nothing else waits for it.";
        bad SNAPSHOT_FAILING = "SnapshotFailing" [HANGAR]: "No whole snapshot came from a member of etcd, or Hangar failed; the message says why. Hangar tries again.";
        bad NOT_PRUNED = "NotPruned" [OWNER]: "Backups are made, but those that `spec.etcd.backup.retention` does not keep could not be deleted; the message says why.";
        bad INVALID_SCHEDULE = "InvalidSchedule" [OWNER]: "The schedule cannot be read, so no backup is made. Admission refuses such a schedule; it was stored before, or while admission was off.";
        bad SUSPENDED = "Suspended" [OWNER]: "`spec.etcd.backup.suspend` is set: no backup is made, also none before deletion.";
    }

    /// Whether the last backup is enough to begin anew. Exists once there is a backup.
    etcd_backup_complete = "EtcdBackupComplete", Positive, Own {
        good COMPLETE = "Complete": "The last backup contains everything that a restore needs, encrypted.";
        bad WITHOUT_KEYS = "WithoutKeys" [OWNER, HANGAR]: "The last backup is not encrypted, so the authorities, the service account keys and the encryption configuration are not in it. A restore needs copies of these Secrets from elsewhere.";
    }

    /// Whether etcd has the data of the backup, or of the member, that spec.etcd.restore names. Exists only while the field is set.
    etcd_restored = "EtcdRestored", Positive, Own {
        good RESTORED = "Restored": "etcd has the data that the message names. The field does nothing any more.";
        bad KEYS_LACKING = "KeysLacking" [OWNER]: "etcd has the data of a backup without keys. Kubeconfigs and tokens of before are not valid, and Secrets that were stored encrypted cannot be read.";
        bad NOT_CONFIRMED = "NotConfirmed" [OWNER]: "The control plane has data, and the specification does not consent to replace it. Nothing is done; the message names the field and the value that is the consent.";
        bad WITHDRAWN = "Withdrawn" [OWNER]: "A restore was begun for a control plane without data, and something else, or nothing, is asked for now. etcd is not started without data.";
        bad NO_BACKUP = "NoBackup" [OWNER]: "There is no such backup in the bucket.";
        bad UNUSABLE = "Unusable" [OWNER]: "The backup, a Secret that leads to it, or the data of the member that is named, cannot be used; the message says why. Nothing was changed.";
        bad RESTORING = "Restoring" [HANGAR, MANAGEMENT_CLUSTER]: "The backup is being decided for, or fetched to the volumes of all members; or the member that is named starts a new cluster with its data.";
        bad FAILING = "Failing" [OPERATOR]: "A pod cannot restore its member; the message repeats what it says. It tries again. Data that the control plane had is still there.";
        ..shared::reads;
    }

    /// Whether API servers are ready.
    api_server_ready = "APIServerReady", Positive, Own {
        good ALL_READY = "AllReady": "All API servers are ready and have the current template.";
        good SOME_READY = "SomeReady": "At least one API server is ready, but some are not ready or have an older template.";
        bad NOT_CREATED = "NotCreated" [HANGAR, OWNER, MANAGEMENT_CLUSTER]: "The Deployment does not exist yet: Hangar waits for keys, for what the settings mount, or for the first etcd pod to start.";
        bad POD_FAILING = "PodFailing" [MANAGEMENT_CLUSTER]: "At least one API server is ready, but a pod finds no node or does not start; the message names it and repeats what is said of it.";
        bad NONE_READY = "NoneReady" [MANAGEMENT_CLUSTER]: "No API server pod is ready.";
        ..shared::reads;
    }

    /// Whether the controller manager and the scheduler are ready.
    controllers_ready = "ControllersReady", Positive, Own {
        good READY = "Ready": "Both are ready.";
        bad POD_FAILING = "PodFailing" [MANAGEMENT_CLUSTER]: "Both are ready, but a further pod of one finds no node or does not start; the message names it and repeats what is said of it.";
        bad NOT_READY = "NotReady" [MANAGEMENT_CLUSTER, HANGAR]: "The controller manager or the scheduler is not ready.";
        ..shared::reads;
    }

    /// Whether the API server has one endpoint, on which all objects agree.
    endpoint_ready = "EndpointReady", Positive, Own {
        good PUBLISHED = "Published": "The endpoint is known and was written to the objects that need it.";
        bad NO_ADDRESS = "NoAddress" [OPERATOR, OWNER, MANAGEMENT_CLUSTER, HANGAR]: "The endpoint has no address yet.";
        bad NOT_PUBLISHED = "NotPublished" [OPERATOR]: "The infrastructure object refused the endpoint; the condition repeats its message.";
        bad CONFLICT = "Conflict" [OWNER]: "The infrastructure or the Cluster names another endpoint.";
        bad ADDRESS_CHANGED = "AddressChanged" [OPERATOR]: "The load balancer, or the nodes of the management cluster, lost the published address.";
    }

    /// Whether the Gateway leads to the API server and to the tunnel's server. Exists only with exposure.type Gateway.
    routes_ready = "RoutesReady", Positive, Own {
        good ACCEPTED = "Accepted": "The Gateway has accepted both routes.";
        bad NO_GATEWAY_API = "NoGatewayAPI" [OPERATOR]: "The management cluster has no TLSRoute of the Gateway API, or serves it only in versions that Hangar does not know.";
        bad OUT_OF_REACH = "OutOfReach" [OPERATOR]: "The manager looks after some namespaces only, and then reads no Gateways.";
        bad NO_GATEWAY = "NoGateway" [OWNER]: "The Gateway that spec.gateway names does not exist.";
        bad NO_LISTENER = "NoListener" [OWNER]: "The Gateway has no listener, or none with the name in spec.gateway.sectionName.";
        bad NOT_TLS = "NotTLS" [OPERATOR]: "No listener of the Gateway has protocol TLS.";
        bad NOT_PASSTHROUGH = "NotPassthrough" [OPERATOR]: "The listener ends TLS itself. It must pass TLS on, because API servers know clients by their certificates.";
        bad NO_WILDCARD = "NoWildcard" [OPERATOR]: "The listener's hostname is no wildcard in which control planes could have names.";
        bad NOT_ALLOWED = "NotAllowed" [OPERATOR]: "The listener's allowedRoutes do not admit TLSRoutes of the control plane's namespace.";
        bad NAME_TOO_LONG = "NameTooLong" [OWNER]: "The host names made from Cluster, namespace and wildcard are longer than host names may be.";
        bad HOST_OUTSIDE = "HostOutside" [OWNER]: "A host name in use, or one that the specification gives, is not among those that the listener leads to this namespace; the message names it and its field.";
        bad CLASS_NOT_ACCEPTED = "ClassNotAccepted" [OPERATOR]: "The Gateway's class does not exist, or no controller has accepted it.";
        bad GATEWAY_NOT_ACCEPTED = "GatewayNotAccepted" [OPERATOR]: "The Gateway's controller does not accept the Gateway; the condition repeats its message.";
        bad NO_ADDRESS = "NoGatewayAddress" [OPERATOR]: "The Gateway has no address yet.";
        bad NOT_MADE = "NotMade" [HANGAR]: "Hangar is about to write the routes.";
        bad NOT_ACCEPTED = "NotAccepted" [OPERATOR]: "The Gateway's controller does not accept a route; the condition repeats its message.";
        bad NOT_RESOLVED = "NotResolved" [OPERATOR]: "The Gateway's controller does not find the Service behind a route; the condition repeats its message.";
        bad NOT_ANSWERED = "NotAnswered" [OPERATOR]: "The Gateway's controller has said nothing yet about the Gateway or about a route.";
        ..shared::reads;
    }

    /// Whether the tenant has everything that nodes need.
    workload_ready = "WorkloadReady", Positive, Own {
        good APPLIED = "Applied": "All objects exist in the tenant.";
        unknown NOT_REACHED = "NotReached" [HANGAR]: "The tenant's API server does not answer to Hangar.";
        bad NO_ADDRESS = "NoAddress" [OPERATOR, OWNER, MANAGEMENT_CLUSTER, HANGAR]: "Objects in the tenant need an address that is not known yet.";
        bad NAME_TAKEN = "NameTaken" [OWNER]: "An object with a required name in the tenant belongs to another owner.";
        bad NO_RIGHTS = "NoRights" [HANGAR]: "Hangar's own role in the tenant, or its binding, is missing or was changed. Hangar writes them again.";
        bad APPLYING = "Applying" [HANGAR]: "Hangar is writing objects. The message includes the last failure, if any.";
    }

    /// Whether the add-ons that Hangar applies in the tenant run: CoreDNS, kube-proxy and the agents of konnectivity. It
    /// stays as it was while they cannot be read.
    addons_ready = "AddonsReady", Positive, Own {
        good RUNNING = "Running": "All pods of all add-ons are ready and have the latest template.";
        bad NO_NODES = "NoNodes" [OWNER]: "The tenant has no Nodes, so that no add-on can run. This is no fault: neither Ready nor Available depends on it.";
        bad NOT_RUNNING = "NotRunning" [OWNER]: "There are Nodes, but no pod of an add-on is ready; the message names it, and repeats what a pod says.";
        bad SOME_NOT_RUNNING = "SomeNotRunning" [OWNER]: "Each add-on runs, but not on every Node or not in the latest version; the message names it, says how many pods are ready, and repeats what a pod says. Ready does not depend on it: Nodes come and go.";
        ..shared::reads;
    }

    /// Whether pods of the control plane are to be replaced: etcd's members, then API servers, then the controller manager
    /// and the scheduler. AddonsReady is about the add-ons, which come last.
    rolling_out = "RollingOut", Negative, Own {
        good NOT_ROLLING_OUT = "NotRollingOut": "All pods have the current template.";
        bad ROLLING_OUT = "RollingOut" [MANAGEMENT_CLUSTER, HANGAR, OPERATOR]: "Pods are being replaced, one after the other; the message says which, how many have the wanted version or settings, and what the next one waits for.";
        bad STOPPED = "Stopped" [OWNER]: "A new pod does not become ready, so nothing else is replaced and the others serve on. The message repeats what the pod says. While no new API server has served, the version can be set back; the message says to which.";
        bad HELD = "Held" [OWNER, MANAGEMENT_CLUSTER, HANGAR]: "The wanted version waits, because something that talks to API servers is too old for it, or because etcd comes first; the message says what.";
        bad RESIZING_ETCD = "ResizingEtcd" [HANGAR, MANAGEMENT_CLUSTER, OPERATOR]: "Members are added to etcd or removed, one at a time, until there are as many as the specification wants; the message names the step.";
    }

    /// Whether there are fewer API servers than wanted.
    scaling_up = "ScalingUp", Negative, Own {
        good NOT_SCALING_UP = "NotScalingUp": "There are enough API servers.";
        bad SCALING_UP = "ScalingUp" [MANAGEMENT_CLUSTER]: "API servers are being added.";
    }

    /// Whether there are more API servers than wanted.
    scaling_down = "ScalingDown", Negative, Own {
        good NOT_SCALING_DOWN = "NotScalingDown": "There are no surplus API servers.";
        bad SCALING_DOWN = "ScalingDown" [MANAGEMENT_CLUSTER]: "API servers are being removed.";
    }

    /// Whether the control plane is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "The control plane is not being deleted.";
        bad HELD = "Held" [OWNER]: "The control plane was deleted while its Cluster lives and refers to it. It is kept as it is until the Cluster is deleted, or the annotation that the message names allows its deletion.";
        bad DELETING = "Deleting" [MANAGEMENT_CLUSTER, HANGAR, OPERATOR]: "Hangar waits until the object that the message names is deleted.";
        bad LAST_BACKUP = "LastBackup" [OWNER]: "The API servers have ended, and the last backup of etcd, which `spec.etcd.backup.beforeDeletion` asks for, is being made or cannot be made; the message says why. Hangar goes on trying. To delete the control plane without it, set `spec.etcd.backup.suspend`.";
        bad RELEASING = "Releasing" [HANGAR]: "Everything else is deleted; Hangar is about to remove its finalizer.";
        bad RELEASED = "Released" [MANAGEMENT_CLUSTER]: "Hangar has removed its finalizer; other finalizers remain.";
    }
}

/// Reasons while nothing is rendered because the specification does not allow it.
pub(crate) mod not_rendered {
    crate::conditions::reasons! {
        "", Positive;
        bad INVALID = "Invalid" [OWNER]: "The specification, or an address range of the Cluster, is invalid; the message names every such field. What runs already is not changed.";
        bad NOT_ALLOWED = "NotAllowed" [OWNER, OPERATOR]: "The specification asks for something that the limits of this management cluster do not allow; the message names the field and the setting. What runs already is not changed.";
        bad NEWER_EPOCH = "NewerEpoch" [OPERATOR]: "A newer version of Hangar rendered this control plane.";
    }
}

/// Reasons while nothing is done.
pub(crate) mod nothing_done {
    crate::conditions::reasons! {
        "", Positive;
        bad NO_OWNER = "NoOwner" [OWNER]: "No Cluster refers to this object.";
        bad NOT_REFERENCED = "NotReferenced" [OWNER]: "The Cluster refers to another object: this one is a copy, and nothing is done for it.";
        bad NOT_CLAIMED = "NotClaimed" [HANGAR]: "Hangar is about to write the finalizer and the epoch.";
        bad DELETING = "Deleting" [HANGAR]: "The control plane is being deleted.";
        bad MADE_BY_ANOTHER = "MadeByAnother" [OPERATOR]: "The object carries the finalizer but no render epoch: another provider created it, or the annotation was removed. Hangar changes nothing.";
    }
}
