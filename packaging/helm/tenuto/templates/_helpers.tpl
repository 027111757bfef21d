{{- define "tenuto.name" -}}
{{- if contains "tenuto" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-tenuto{{ end }}
{{- end }}

{{- define "tenuto.labels" -}}
app.kubernetes.io/name: tenuto
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tenuto.selector" -}}
app.kubernetes.io/name: tenuto
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tenuto.image" -}}
{{ required "image.repository: push the image of `make image` to a registry" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "tenuto.scheme" -}}
{{ if .Values.tls.secretName }}https{{ else }}http{{ end }}
{{- end }}

{{- /* The options that nodes, directors and `tenuto cluster` have. */}}
{{- define "tenuto.cluster" -}}
- --cluster
- {{ required "etcd.endpoints: the members of etcd" (join "," .Values.etcd.endpoints) | quote }}
- --cluster-name
- {{ .Values.cluster.name | quote }}
{{- if .Values.etcd.certSecretName }}
- --etcd-cert
- /etc/tenuto/etcd-cert/tls.crt
- --etcd-key
- /etc/tenuto/etcd-cert/tls.key
{{- end }}
{{- if .Values.etcd.userSecretName }}
- --etcd-user
- /etc/tenuto/etcd-user/user
{{- end }}
{{- end }}

{{- define "tenuto.security" -}}
- --cluster-secret
- /etc/tenuto/cluster/secret
{{- if .Values.tls.secretName }}
- --tls-certificate
- /etc/tenuto/tls/tls.crt
- --tls-key
- /etc/tenuto/tls/tls.key
{{- end }}
{{- if .Values.tokens.secretName }}
- --tokens
- /etc/tenuto/tokens/keys.json
{{- end }}
{{- if not (and .Values.tls.secretName .Values.tokens.secretName) }}
- --insecure
{{- end }}
{{- end }}

{{- define "tenuto.bucket" -}}
{{- if .Values.bucket.address }}
- --bucket
- {{ .Values.bucket.address | quote }}
{{- if .Values.bucket.endpoint }}
- --bucket-endpoint
- {{ .Values.bucket.endpoint | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tenuto.env" -}}
{{- if .Values.etcd.caSecretName }}
# The authority of etcd beside those that the image trusts.
- name: SSL_CERT_FILE
  value: /etc/tenuto/etcd/ca.crt
- name: SSL_CERT_DIR
  value: /etc/ssl/certs
{{- end }}
{{- end }}

{{- define "tenuto.keys" -}}
{{- if .Values.bucket.keysSecretName }}
envFrom:
  - secretRef:
      name: {{ .Values.bucket.keysSecretName }}
{{- end }}
{{- end }}

{{- define "tenuto.mounts" -}}
- name: cluster-secret
  mountPath: /etc/tenuto/cluster
  readOnly: true
{{- if .Values.etcd.caSecretName }}
- name: etcd-ca
  mountPath: /etc/tenuto/etcd
  readOnly: true
{{- end }}
{{- if .Values.etcd.certSecretName }}
- name: etcd-cert
  mountPath: /etc/tenuto/etcd-cert
  readOnly: true
{{- end }}
{{- if .Values.etcd.userSecretName }}
- name: etcd-user
  mountPath: /etc/tenuto/etcd-user
  readOnly: true
{{- end }}
{{- if .Values.tls.secretName }}
- name: tls
  mountPath: /etc/tenuto/tls
  readOnly: true
{{- end }}
{{- if .Values.tokens.secretName }}
- name: tokens
  mountPath: /etc/tenuto/tokens
  readOnly: true
{{- end }}
{{- end }}

{{- /* Files that other users can read are refused; the group is that of the pod. */}}
{{- define "tenuto.volumes" -}}
- name: cluster-secret
  secret:
    secretName: {{ required "cluster.secretName: a Secret with the key `secret`" .Values.cluster.secretName }}
    defaultMode: 0440
{{- if .Values.etcd.caSecretName }}
- name: etcd-ca
  secret:
    secretName: {{ .Values.etcd.caSecretName }}
{{- end }}
{{- if .Values.etcd.certSecretName }}
- name: etcd-cert
  secret:
    secretName: {{ .Values.etcd.certSecretName }}
    defaultMode: 0440
{{- end }}
{{- if .Values.etcd.userSecretName }}
- name: etcd-user
  secret:
    secretName: {{ .Values.etcd.userSecretName }}
    defaultMode: 0440
{{- end }}
{{- if .Values.tls.secretName }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName }}
    defaultMode: 0440
{{- end }}
{{- if .Values.tokens.secretName }}
- name: tokens
  secret:
    secretName: {{ .Values.tokens.secretName }}
    defaultMode: 0440
{{- end }}
{{- end }}
