//! Flags of the older Cloudflare operator that no longer decide anything: accepted, and answered with a note.

/// What its Deployments pass.
#[derive(clap::Args, Debug)]
pub(super) struct OlderArgs {
    #[arg(long, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metrics_secure: Option<bool>,
    #[arg(long, hide = true)]
    metrics_cert_path: Option<String>,
    #[arg(long, hide = true)]
    metrics_cert_name: Option<String>,
    #[arg(long, hide = true)]
    metrics_cert_key: Option<String>,
    #[arg(long, hide = true)]
    webhook_cert_path: Option<String>,
    #[arg(long, hide = true)]
    webhook_cert_name: Option<String>,
    #[arg(long, hide = true)]
    webhook_cert_key: Option<String>,
    #[arg(long, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_http2: Option<bool>,
    #[arg(long, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    overwrite_unmanaged_dns: Option<bool>,
    #[arg(long, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    zap_devel: Option<bool>,
    #[arg(long, hide = true)]
    zap_encoder: Option<String>,
    #[arg(long, hide = true)]
    zap_log_level: Option<String>,
    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,
    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,
}

impl OlderArgs {
    /// Says of each flag that was given what became of it.
    pub(super) fn tell(&self) {
        for (flag, note) in self.notes() {
            tracing::warn!(flag, "{note}");
        }
    }

    fn notes(&self) -> Vec<(&'static str, &'static str)> {
        let webhooks = "There are no webhooks: what they checked is in the definitions";
        let plain = "Metrics are served over plain HTTP: keep their address inside the cluster";
        let logs = "Logs are set with --log and LOG_LEVEL";
        let flags = [
            (self.metrics_secure == Some(true), "--metrics-secure", plain),
            (self.metrics_cert_path.is_some(), "--metrics-cert-path", plain),
            (self.metrics_cert_name.is_some(), "--metrics-cert-name", plain),
            (self.metrics_cert_key.is_some(), "--metrics-cert-key", plain),
            (self.webhook_cert_path.is_some(), "--webhook-cert-path", webhooks),
            (self.webhook_cert_name.is_some(), "--webhook-cert-name", webhooks),
            (self.webhook_cert_key.is_some(), "--webhook-cert-key", webhooks),
            (self.enable_http2 == Some(true), "--enable-http2", "Nothing is served over HTTP/2"),
            (
                self.overwrite_unmanaged_dns == Some(true),
                "--overwrite-unmanaged-dns",
                "Existing records are taken over only where the object says so: annotate it with portolan.dev/adopt: \"true\"",
            ),
            (self.zap_devel.is_some(), "--zap-devel", logs),
            (self.zap_encoder.is_some(), "--zap-encoder", logs),
            (self.zap_log_level.is_some(), "--zap-log-level", logs),
            (self.zap_stacktrace_level.is_some(), "--zap-stacktrace-level", logs),
            (self.zap_time_encoding.is_some(), "--zap-time-encoding", logs),
        ];
        flags.into_iter().filter(|(given, ..)| *given).map(|(_, flag, note)| (flag, note)).collect()
    }
}
