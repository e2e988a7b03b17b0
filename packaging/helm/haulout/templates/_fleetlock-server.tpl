{{- /* The limit of the FleetLock servers: their own, or the number in the agents' configuration. */ -}}
{{- define "haulout.fleetlockLimit" -}}
{{- $limit := "1" -}}
{{- $nodes := index .Values.config "max-unavailable" -}}
{{- if .Values.fleetlockServer.maxUnavailable -}}
{{- $limit = toString .Values.fleetlockServer.maxUnavailable -}}
{{- else if not (kindIs "invalid" $nodes) -}}
{{- $limit = toString $nodes -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+$" $limit) -}}
{{- fail (printf "config.max-unavailable is %s, and the FleetLock servers take no percentage: set fleetlockServer.maxUnavailable to a number" $limit) -}}
{{- else if eq (int $limit) 0 -}}
{{- fail "config.max-unavailable is 0, and the FleetLock servers take no 0: set fleetlockServer.maxUnavailable, or fleetlockServer.enabled to false" -}}
{{- end -}}
{{- int $limit -}}
{{- end -}}

{{- /* Changes the Deployment and the Service of the FleetLock servers as the values ask for. Arguments: root, object. */ -}}
{{- define "haulout.changeFleetlockServer" -}}
{{- $values := .root.Values.fleetlockServer -}}
{{- $object := .object -}}
{{- if eq $object.kind "Deployment" -}}
{{- $pod := $object.spec.template.spec -}}
{{- $server := index $pod.containers 0 -}}
{{- $_ := set $server "image" (include "haulout.image" .root) -}}
{{- $_ := set $server "imagePullPolicy" .root.Values.image.pullPolicy -}}
{{- with .root.Values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- $args := list -}}
{{- range $server.args }}{{ if not (regexMatch "^--(pool|max-unavailable)=" .) }}{{ $args = append $args . }}{{ end }}{{ end -}}
{{- range $values.pools }}{{ $args = append $args (printf "--pool=%s" .) }}{{ end -}}
{{- $_ := set $server "args" (append $args (printf "--max-unavailable=%s" (include "haulout.fleetlockLimit" .root))) -}}
{{- $_ := set $object.spec "replicas" ($values.replicas | int64) -}}
{{- $_ := set $server "resources" $values.resources -}}
{{- $_ := set $pod "nodeSelector" $values.nodeSelector -}}
{{- with $values.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end -}}
{{- with $values.affinity }}{{ $_ := set $pod "affinity" . }}{{ end -}}
{{- else if eq $object.kind "Service" -}}
{{- with $values.service.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end -}}
{{- if ne $values.service.type "ClusterIP" -}}
{{- $_ := set $object.spec "type" $values.service.type -}}
{{- $_ := set $object.spec "externalTrafficPolicy" $values.service.externalTrafficPolicy -}}
{{- end -}}
{{- with $values.service.loadBalancerSourceRanges }}{{ $_ := set $object.spec "loadBalancerSourceRanges" . }}{{ end -}}
{{- end -}}
{{- end -}}
