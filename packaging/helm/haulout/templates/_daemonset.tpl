{{- /* The configuration file of the agents. */ -}}
{{- define "haulout.config" -}}
{{- toYaml .Values.config -}}
{{- end -}}

{{- define "haulout.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Adds flags to the DaemonSet's container. Arguments: agent, flags. */ -}}
{{- define "haulout.addFlags" -}}
{{- $_ := set .agent "args" (concat .agent.args .flags) -}}
{{- end -}}

{{- /* Changes the DaemonSet as the values ask for. Arguments: root, object. */ -}}
{{- define "haulout.changeDaemonSet" -}}
{{- $values := .root.Values -}}
{{- $spec := .object.spec -}}
{{- $template := $spec.template -}}
{{- $pod := $template.spec -}}
{{- $agent := index $pod.containers 0 -}}

{{- $_ := set $agent "image" (include "haulout.image" .root) -}}
{{- $_ := set $agent "imagePullPolicy" $values.image.pullPolicy -}}
{{- with $values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}

{{- /* The name of the ConfigMap stays the same, so a checksum restarts the agents. */ -}}
{{- $annotations := dict "checksum/config" (include "haulout.config" .root | sha256sum) -}}
{{- $_ := set $template.metadata "annotations" (merge $template.metadata.annotations $annotations (default dict $values.podAnnotations)) -}}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels (default dict $values.podLabels)) -}}

{{- /* The probes use the port of the agents' status pages. */ -}}
{{- with index $values.config "metrics-address" -}}
{{- range $agent.ports }}{{ $_ := set . "containerPort" (regexFind "[0-9]+$" (index $values.config "metrics-address") | int64) }}{{ end -}}
{{- end -}}

{{- $strategy := deepCopy $values.updateStrategy -}}
{{- if eq $strategy.type "OnDelete" }}{{ $strategy = omit $strategy "rollingUpdate" }}{{ end -}}
{{- $_ := set $spec "updateStrategy" $strategy -}}
{{- $_ := set $agent "resources" $values.resources -}}
{{- $_ := set $pod "nodeSelector" $values.nodeSelector -}}
{{- $_ := set $pod "tolerations" $values.tolerations -}}
{{- with $values.affinity }}{{ $_ := set $pod "affinity" . }}{{ end -}}
{{- if $values.priorityClass.name -}}
{{- $_ := set $pod "priorityClassName" $values.priorityClass.name -}}
{{- else -}}
{{- $_ := unset $pod "priorityClassName" -}}
{{- end -}}

{{- if $values.policiesOnly -}}
{{- include "haulout.addFlags" (dict "agent" $agent "flags" (list "--authority=policies")) -}}
{{- end -}}
{{- if $values.bottlerocket }}{{ include "haulout.forBottlerocket" (dict "pod" $pod "agent" $agent) }}{{ end -}}
{{- if $values.kubeletCredentials }}{{ include "haulout.withKubeletCredentials" (dict "pod" $pod "agent" $agent) }}{{ end -}}

{{- $_ := set $pod "volumes" (concat $pod.volumes (default list $values.extraVolumes)) -}}
{{- $_ := set $agent "volumeMounts" (concat $agent.volumeMounts (default list $values.extraVolumeMounts)) -}}
{{- $_ := set $agent "env" (concat $agent.env (default list $values.extraEnv)) -}}
{{- end -}}

{{- /* As packaging/kustomize/components/bottlerocket. */ -}}
{{- define "haulout.forBottlerocket" -}}
{{- $_ := set .pod.securityContext.seLinuxOptions "type" "super_t" -}}
{{- include "haulout.addFlags" (dict "agent" .agent "flags" (list "--backend=bottlerocket")) -}}
{{- $unused := list "kernel-hooks" "apt-options" "boot" "host-config" -}}
{{- $volumes := list -}}
{{- range .pod.volumes }}{{ if not (has .name $unused) }}{{ $volumes = append $volumes . }}{{ end }}{{ end -}}
{{- $mounts := list -}}
{{- range .agent.volumeMounts }}{{ if not (has .name $unused) }}{{ $mounts = append $mounts . }}{{ end }}{{ end -}}
{{- $_ := set .pod "volumes" $volumes -}}
{{- $_ := set .agent "volumeMounts" $mounts -}}
{{- end -}}

{{- /* As packaging/kustomize/components/kubelet-credentials. */ -}}
{{- define "haulout.withKubeletCredentials" -}}
{{- $file := "/etc/kubernetes/kubelet.conf" -}}
{{- $pki := "/var/lib/kubelet/pki" -}}
{{- $_ := set .pod "automountServiceAccountToken" false -}}
{{- $flags := list "--authority=kubelet" (printf "--kubeconfig=%s" $file) "--slots=fleetlock" -}}
{{- include "haulout.addFlags" (dict "agent" .agent "flags" $flags) -}}
{{- $mounts := list (dict "name" "kubeconfig" "mountPath" $file "readOnly" true) (dict "name" "pki" "mountPath" $pki "readOnly" true) -}}
{{- $volumes := list (dict "name" "kubeconfig" "hostPath" (dict "path" $file "type" "File")) (dict "name" "pki" "hostPath" (dict "path" $pki "type" "Directory")) -}}
{{- $_ := set .agent "volumeMounts" (concat .agent.volumeMounts $mounts) -}}
{{- $_ := set .pod "volumes" (concat .pod.volumes $volumes) -}}
{{- end -}}
