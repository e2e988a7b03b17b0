package e2e

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// With the component policies-only, Kubernetes 1.30 accepts every policy. Without it, servers before 1.33 refuse the
// policy for Nodes. They must: the policy distinguishes an agent that impersonates its node from the kubelet of that
// node by an attribute that kubelets of these versions may lack, so it could refuse the requests of kubelets.
func TestPoliciesOfOlderServers(t *testing.T) {
	for _, r := range []struct {
		minor   uint
		refused string // the policy of the base that the server refuses
	}{{30, "haulout-own-node"}, {32, "haulout-own-node"}, {33, ""}, {36, ""}} {
		t.Run(fmt.Sprintf("1.%d", r.minor), func(t *testing.T) {
			expectAccepted(t, r.minor, "", "policies-only", "surge")
			expectAccepted(t, r.minor, r.refused, "surge")
		})
	}
}

func expectAccepted(t *testing.T, minor uint, refused string, components ...string) {
	t.Helper()
	dir, err := kustomization(t.TempDir(), components...)
	must(t, err)
	rendered, err := cluster.AdminKubectl(t.Context(), "kustomize", dir)
	must(t, err)
	seen := 0
	for _, object := range strings.Split(rendered, "\n---\n") {
		var policy admissionv1.ValidatingAdmissionPolicy
		must(t, yaml.Unmarshal([]byte(object), &policy))
		if policy.Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		seen++
		wrong := compileErrors(t, minor, policy)
		if (len(wrong) > 0) != (policy.Name == refused) {
			t.Errorf("%v, policy %s: %v", components, policy.Name, wrong)
		}
	}
	if seen < 4 {
		t.Errorf("%v: there are %d policies", components, seen)
	}
}

// compileErrors returns the errors with which a server of this version refuses a new policy. It accepts only
// expressions that the minor version before it also understands.
func compileErrors(t *testing.T, minor uint, policy admissionv1.ValidatingAdmissionPolicy) (wrong []string) {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, minor-1)))
	must(t, err)
	options := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	judge := func(what string, result cel.CompilationResult) {
		if result.Error != nil {
			wrong = append(wrong, what+": "+result.Error.Error())
		}
	}
	compile := func(expression cel.ExpressionAccessor) {
		judge(expression.GetExpression(), compiler.CompileCELExpression(expression, options, environment.NewExpressions))
	}
	for _, condition := range policy.Spec.MatchConditions {
		compile((*matchconditions.MatchCondition)(&condition))
	}
	for _, variable := range policy.Spec.Variables {
		judge(variable.Name, compiler.CompileAndStoreVariable(
			&validating.Variable{Name: variable.Name, Expression: variable.Expression}, options, environment.NewExpressions))
	}
	for _, rule := range policy.Spec.Validations {
		compile(&validating.ValidationCondition{Expression: rule.Expression})
		if rule.MessageExpression != "" {
			compile(&validating.MessageExpressionCondition{MessageExpression: rule.MessageExpression})
		}
	}
	return wrong
}
