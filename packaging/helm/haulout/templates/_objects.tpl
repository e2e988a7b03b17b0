{{- /*
The objects of the chart are those of packaging/kustomize. `files` has copies of them. These templates read the copies and
change what the values ask for. A test compares the result with what kustomize makes of the same files.
*/ -}}

{{- /* The text of a file, with the namespace of the values. Arguments: root, path. */ -}}
{{- define "haulout.text" -}}
{{- $name := .root.Values.namespace.name -}}
{{- $text := .root.Files.Get .path -}}
{{- $text = regexReplaceAll "(?m)^( *(- )?namespace:) haulout$" $text (printf "${1} %s" $name) -}}
{{- $text = replace "system:serviceaccount:haulout:haulout" (include "haulout.user" .root) $text -}}
{{- $text = replace "request.namespace == 'haulout'" (printf "request.namespace == '%s'" $name) $text -}}
{{- replace "the Leases haulout/" (printf "the Leases %s/" $name) $text -}}
{{- end -}}

{{- /* The user name of the agents' ServiceAccount. */ -}}
{{- define "haulout.user" -}}
system:serviceaccount:{{ .Values.namespace.name }}:haulout
{{- end -}}

{{- /* The paths of the files that the values ask for, as a JSON list. */ -}}
{{- define "haulout.paths" -}}
{{- $patterns := list "files/base/*.yaml" -}}
{{- with .Values -}}
{{- if .policiesOnly }}{{ $patterns = append $patterns "files/components/policies-only/*.yaml" }}{{ end -}}
{{- if .guards }}{{ $patterns = append $patterns "files/components/guards/*.yaml" }}{{ end -}}
{{- if .networkPolicy.enabled }}{{ $patterns = append $patterns "files/components/network-policy/*.yaml" }}{{ end -}}
{{- if .podMonitor.enabled }}{{ $patterns = append $patterns "files/components/pod-monitor/*.yaml" }}{{ end -}}
{{- if .fleetlockServer.enabled }}{{ $patterns = append $patterns "files/fleetlock-server/*.yaml" }}{{ end -}}
{{- range $name, $wanted := dict "surge" .surge "eviction-requests" .evictionRequests -}}
{{- if $wanted.policy }}{{ $patterns = append $patterns (printf "files/components/%s/policy-*.yaml" $name) }}{{ end -}}
{{- if $wanted.rights }}{{ $patterns = append $patterns (printf "files/components/%s/rbac-*.yaml" $name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $paths := list -}}
{{- range $pattern := $patterns -}}
{{- range $path, $_ := $.Files.Glob $pattern }}{{ $paths = append $paths $path }}{{ end -}}
{{- end -}}
{{- toJson $paths -}}
{{- end -}}

{{- /* Not empty if the values leave the object out. Arguments: root, object. */ -}}
{{- define "haulout.leftOut" -}}
{{- $values := .root.Values -}}
{{- $kind := .object.kind -}}
{{- $name := .object.metadata.name -}}
{{- $group := regexReplaceAll "/.*" .object.apiVersion "" -}}
{{- $is_policy := eq $group "admissionregistration.k8s.io" -}}
{{- $is_right := eq $group "rbac.authorization.k8s.io" -}}
{{- if and (eq $kind "Namespace") (or (not $values.namespace.create) (eq $values.namespace.name .root.Release.Namespace)) -}}
left out
{{- else if and (eq $kind "PriorityClass") (not $values.priorityClass.create) -}}
left out
{{- else if and $values.policiesOnly $is_right (eq $name "haulout-impersonation") -}}
left out
{{- else if and $values.policiesOnly $is_policy (eq $name "haulout-node-evictions") -}}
left out
{{- else if and $values.kubeletCredentials $is_right (eq (index .object.metadata.labels "app.kubernetes.io/name") "haulout") -}}
left out
{{- else if and $values.kubeletCredentials $is_policy (has $name (list "haulout-own-node" "haulout-own-slots" "haulout-own-events")) -}}
left out
{{- end -}}
{{- end -}}

{{- /* Changes the object as the values ask for. Arguments: root, object. */ -}}
{{- define "haulout.change" -}}
{{- $values := .root.Values -}}
{{- $object := .object -}}
{{- $name := $object.metadata.name -}}
{{- if eq $object.kind "Namespace" -}}
{{- $_ := set $object.metadata "name" $values.namespace.name -}}
{{- if not $values.namespace.podSecurityLabel -}}
{{- $_ := unset $object.metadata.labels "pod-security.kubernetes.io/enforce" -}}
{{- end -}}
{{- else if eq $object.kind "DaemonSet" -}}
{{- include "haulout.changeDaemonSet" . -}}
{{- else if eq $name "haulout-fleetlock" -}}
{{- include "haulout.changeFleetlockServer" . -}}
{{- else if eq $object.kind "ServiceAccount" -}}
{{- with $values.serviceAccount.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end -}}
{{- else if eq $object.kind "PriorityClass" -}}
{{- $_ := set $object.metadata "name" $values.priorityClass.name -}}
{{- else if eq $object.kind "ResourceQuota" -}}
{{- $_ := set $object.spec.hard "count/leases.coordination.k8s.io" ($values.slotQuota | int64 | toString) -}}
{{- else if eq $object.kind "NetworkPolicy" -}}
{{- $from := index (index $object.spec.ingress 0).from 0 -}}
{{- $_ := set $from.namespaceSelector.matchLabels "kubernetes.io/metadata.name" $values.networkPolicy.prometheusNamespace -}}
{{- else if eq $object.kind "PodMonitor" -}}
{{- $_ := set $object.metadata "labels" (merge $object.metadata.labels (default dict $values.podMonitor.labels)) -}}
{{- range $object.spec.podMetricsEndpoints -}}
{{- if $values.podMonitor.interval }}{{ $_ := set . "interval" $values.podMonitor.interval }}{{ end -}}
{{- end -}}
{{- else if eq $object.kind "ValidatingAdmissionPolicy" -}}
{{- if and (eq $name "haulout-own-node") (or $values.policiesOnly $values.unmarkedKubelets) -}}
{{- $only := printf "request.userInfo.username == '%s'" (include "haulout.user" .root) -}}
{{- $_ := set (index $object.spec.matchConditions 0) "expression" $only -}}
{{- else if and (eq $name "haulout-evictions-only") $values.surge.rights -}}
{{- $rule := index $object.spec.validations 0 -}}
{{- if ne $rule.expression "variables.is_eviction" }}{{ fail "the first rule of haulout-evictions-only has changed" }}{{ end -}}
{{- $_ := set $rule "expression" "variables.is_eviction || (request.operation == 'UPDATE' && request.?subResource.orValue('') == '')" -}}
{{- $_ := set $rule "message" "an agent may only evict pods, and change what haulout-surge allows" -}}
{{- end -}}
{{- end -}}
{{- end -}}
