//! Reasons that only the zerotrust job has: `PascalCase`, stable, and each with when it appears.

portolan_core::reasons! {
    /// No tenant of that name, or none in the namespace.
    TENANT_NOT_FOUND = "TenantNotFound";
    /// The tenant takes no routes of the namespace.
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed";
    /// The tenant's `allowedHostnames` do not cover the name.
    HOSTNAME_NOT_ALLOWED = "HostnameNotAllowed";
    /// The route names a tunnel that its tenant does not let it use.
    TUNNEL_NOT_ALLOWED = "TunnelNotAllowed";
    /// The route says `adopt`, which its tenant does not let it.
    ADOPTION_NOT_ALLOWED = "AdoptionNotAllowed";
    /// The tenant demands Access, and the route does not ask for it.
    ACCESS_REQUIRED = "AccessRequired";
    /// Requests would go to an origin that the tenant does not let the route use.
    ORIGIN_NOT_ALLOWED = "OriginNotAllowed";
    /// Requests would go to what protects the cluster, which only the operator's own configuration can allow.
    ORIGIN_REFUSED = "OriginRefused";
    /// The route refers to a Service of another namespace, which does not permit it.
    REF_NOT_PERMITTED = "RefNotPermitted";
    /// The route has more than one backend, filters or conditions, and nothing says which gateway carries them out.
    ROUTE_TOO_COMPLEX = "RouteTooComplex";
    /// Event: the route's own hostnames are not the name that is published.
    HOSTNAMES_DIFFER = "HostnamesDiffer";
    /// The namespace has several tenants and the route names none.
    TENANT_AMBIGUOUS = "TenantAmbiguous";
    /// The template that the route names does not exist; nothing is published with less than was asked for.
    TEMPLATE_NOT_FOUND = "TemplateNotFound";
    /// The hostname is missing or is none.
    INVALID_HOSTNAME = "InvalidHostname";
    /// An annotation holds a value that cannot be read.
    INVALID_ANNOTATION = "InvalidAnnotation";
    /// An annotation under our prefix has a name that nothing reads: what stands stays, nothing new is published.
    UNKNOWN_ANNOTATION = "UnknownAnnotation";
    /// Nobody says where requests go, and the route's first backend does not tell.
    ORIGIN_UNRESOLVED = "OriginUnresolved";
    /// The Service has no address yet.
    NO_LOAD_BALANCER_IP = "NoLoadBalancerIP";
    /// The address of a name without a tunnel is missing or cannot be used.
    INVALID_TARGET_IP = "InvalidTargetIP";
    /// Access was asked for where requests would not pass through it.
    PROTECTION_IMPOSSIBLE = portolan_publication::reasons::PROTECTION_IMPOSSIBLE;
    /// Access or a service token was asked for a private name without a tunnel, where neither has an effect.
    PROTECTION_IGNORED = "ProtectionIgnored";
    /// Another route has the hostname.
    HOSTNAME_CONFLICT = "HostnameConflict";
    /// The name was protected when another route had it, and this one asks for less.
    PROTECTION_WOULD_BE_LOST = "ProtectionWouldBeLost";
    /// No zone of the account holds the name.
    ZONE_NOT_FOUND = "ZoneNotFound";
    /// The name lies in another zone than the tenant's.
    ZONE_MISMATCH = "ZoneMismatch";
    /// The rule stands, but no DNS record: no zone of the account holds the name.
    DNS_SKIPPED = "DNSSkipped";
    /// Access is on and lets nobody pass.
    NO_ACCESS_POLICY = "NoAccessPolicy";
    /// Who may pass is said, or a service token asked for, and `access.enabled` says `false`: the name is public.
    ACCESS_NOT_ENABLED = "AccessNotEnabled";
    /// Event and condition of the tenant: a name that had an Access application is public by its users' wish.
    PROTECTION_REMOVED = "ProtectionRemoved";
    /// Condition of the tenant: no name lost its Access application within a day.
    PROTECTION_KEPT = "ProtectionKept";
    /// Event and condition of the tenant: routes that are published with it stand outside the watched namespaces.
    ROUTES_NOT_WATCHED = "RoutesNotWatched";
    /// Condition of the tenant: all its routes are in watched namespaces.
    ROUTES_WATCHED = "RoutesWatched";
    /// The Secret for the token's credentials exists and is somebody else's.
    SECRET_CONFLICT = "SecretConflict";
    /// The Secret with the API token does not exist.
    CREDENTIAL_NOT_FOUND = "CredentialNotFound";
    /// The Secret with the API token lacks the key.
    CREDENTIAL_KEY_MISSING = "CredentialKeyMissing";
    /// Cloudflare refuses the API token.
    CREDENTIAL_INVALID = "CredentialInvalid";
    /// Cloudflare refused a request, or could not be reached.
    CLOUDFLARE_API_ERROR = "CloudflareAPIError";
    /// The API budget is spent; tried again when it allows.
    RATE_LIMITED = portolan_core::reasons::RATE_LIMITED;
    /// Some of the tenant's routes failed.
    PARTIAL_FAILURE = "PartialFailure";
    /// All of the tenant's routes stand as asked.
    RECONCILE_SUCCESS = "ReconcileSuccess";
    /// Event: a task was made for the route.
    QUEUED = "Queued";
    /// Event: the route is being deleted in a namespace that is not watched.
    NOT_WATCHED = "NotWatched";
    /// Event: the route stands as asked.
    RECONCILED = portolan_core::reasons::RECONCILED;
    /// Event: what stood for the route is gone.
    DELETED = portolan_core::reasons::DELETED;
    /// Template: what it says can be used.
    VALID = "Valid";
    /// Template: something that it says cannot be used.
    INVALID_SPEC = "InvalidSpec";
    /// Template: routes use it.
    IN_USE = "InUse";
    /// Template: no route uses it.
    NOT_USED = "NotUsed";
    /// Told by `portolan status` and `portolan why`: a task ended without success, and its message has no reason.
    TASK_FAILED = "TaskFailed";
    /// Told by `portolan status` and `portolan why`: a task waits for its next attempt, and its message has no reason.
    TASK_WAITING = "TaskWaiting";
    /// Told by `portolan status` and `portolan why`: a task is waiting to be carried out, or is.
    TASK_UNDER_WAY = "TaskUnderWay";
    /// `OperatorConfig`: what it says now was written to the operator's Deployment.
    CONFIGURATION_APPLIED = "ConfigurationApplied";
    /// `OperatorConfig`: the operator's Deployment was as it says already.
    NO_CHANGES_NEEDED = "NoChangesNeeded";
    /// `OperatorConfig`: it could not be applied; the message says why and what to do.
    APPLY_FAILED = "ApplyFailed";
    /// `OperatorConfig`: all pods of the operator and its workers run as it says.
    DEPLOYMENT_READY = "DeploymentReady";
    /// `OperatorConfig`: pods of the operator or its workers are missing, old or not ready; the message says whose.
    DEPLOYMENT_NOT_READY = "DeploymentNotReady";
    /// `OperatorConfig`: an older one is in force, and this one has no effect.
    MULTIPLE_CONFIGS = "MultipleConfigs";
}
