{{/* Names and labels: as in crates/install/src/objects.rs. */}}
{{- define "portolan.name" -}}
{{- .Values.nameOverride | default "cloudflare-zero-trust-operator" -}}
{{- end }}

{{- define "portolan.fullname" -}}
{{- .Values.fullnameOverride | default (include "portolan.name" .) -}}
{{- end }}

{{- define "portolan.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end }}

{{- define "portolan.account" -}}
{{- .Values.serviceAccount.name | default (include "portolan.fullname" .) -}}
{{- end }}

{{/* Labels that all pods have. */}}
{{- define "portolan.pods" -}}
app.kubernetes.io/name: {{ include "portolan.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of everything that is installed. */}}
{{- define "portolan.labels" -}}
{{ include "portolan.pods" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* The Deployments that there will be, and the table of rights of each; the operator itself makes those of its workers. */}}
{{- define "portolan.components" -}}
{{- if eq .Values.operator.mode "roles" -}}
{"operator": "manager", "kube-worker": "kube-worker", "cloudflare-worker": "cloudflare-worker"}
{{- else -}}
{"operator": "all"}
{{- end -}}
{{- end }}

{{/* What stays when the release goes: annotations of (list context definition-is-known). An object of a kind that the
     cluster does not know yet is made by a hook, after the definitions; the next upgrade takes it into the release. */}}
{{- define "portolan.own" -}}
{{- $root := index . 0 }}
{{- $known := $root.Capabilities.APIVersions.Has (printf "cfzt.cloudflare.com/v1alpha1/%s" (index . 1)) }}
{{- if or $root.Values.crds.keep (not $known) }}
annotations:
  {{- if $root.Values.crds.keep }}
  helm.sh/resource-policy: keep
  {{- end }}
  {{- if not $known }}
  helm.sh/hook: post-install,post-upgrade
  meta.helm.sh/release-name: {{ $root.Release.Name | quote }}
  meta.helm.sh/release-namespace: {{ $root.Release.Namespace | quote }}
  {{- end }}
{{- end }}
labels:
  {{- include "portolan.labels" $root | nindent 2 }}
  {{- if not $known }}
  app.kubernetes.io/managed-by: Helm
  {{- end }}
{{- end }}
