{{- /* Fails if the values contradict each other, or do not fit the cluster. */ -}}
{{- define "haulout.check" -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- with .Values -}}
{{- if and .policiesOnly .kubeletCredentials -}}
{{- fail "policiesOnly and kubeletCredentials exclude each other: set one of them to false" -}}
{{- end -}}
{{- if and .surge.rights (not .surge.policy) -}}
{{- fail "surge.rights needs surge.policy, which restricts these rights: set surge.policy to true" -}}
{{- end -}}
{{- if and .evictionRequests.rights (not .evictionRequests.policy) -}}
{{- fail "evictionRequests.rights needs evictionRequests.policy, which restricts these rights: set evictionRequests.policy to true" -}}
{{- end -}}
{{- if and (semverCompare "<1.36.0-0" $version) (not .policiesOnly) (not .kubeletCredentials) -}}
{{- fail (printf "agents cannot act as their nodes in Kubernetes %s, but from 1.36 on: set policiesOnly to true. If this is not the version of your cluster, because Helm did not ask it, add --kube-version" $version) -}}
{{- end -}}
{{- with .fleetlockServer.service -}}
{{- if and .loadBalancerSourceRanges (ne .type "LoadBalancer") -}}
{{- fail "fleetlockServer.service.loadBalancerSourceRanges has an effect only with the type LoadBalancer: set fleetlockServer.service.type, or remove the ranges" -}}
{{- end -}}
{{- end -}}
{{- if and .priorityClass.create (not .priorityClass.name) -}}
{{- fail "priorityClass.create needs priorityClass.name: set a name, or set priorityClass.create to false" -}}
{{- end -}}
{{- end -}}
{{- end -}}
