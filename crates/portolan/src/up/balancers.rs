//! Addresses of load balancers: files say them, since no cloud gives any here.

use http::Method;
use serde_json::json;

use crate::failure::Outcome;
use crate::kinds::segment;
use crate::manifest::Manifest;
use crate::server::{Server, ServerRequest};

/// Writes the load balancers' addresses that the files' Services carry in their status.
pub(super) async fn write(server: &Server, manifests: &[Manifest]) -> Outcome {
    for manifest in manifests.iter().filter(|manifest| is_balanced(manifest)) {
        let namespace = manifest.namespace().unwrap_or("default");
        let path = format!("/api/v1/namespaces/{}/services/{}/status", segment(namespace), segment(manifest.name()));
        let patch = json!({"status": {"loadBalancer": manifest.object["status"]["loadBalancer"]}});
        let call = ServerRequest {
            method: Method::PATCH,
            content_type: "application/merge-patch+json",
            body: patch.to_string().into_bytes(),
            ..ServerRequest::get(&path)
        };
        server.call(call).await?;
    }
    Ok(())
}

fn is_balanced(manifest: &Manifest) -> bool {
    let is_service = manifest.api_version() == "v1" && manifest.kind() == "Service";
    is_service && manifest.object["status"]["loadBalancer"].is_object()
}
