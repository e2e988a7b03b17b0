package e2e

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is the content of a kubeconfig. Tests change single fields of it.
type Access struct {
	Server        string
	CA            []byte
	TLSServerName string
	ProxyURL      string
	Identity      Identity
	Token         string

	// Paths of files that the client reads again, because they may be replaced.
	TokenFile, CAFile, CertFile, KeyFile string
}

// Write writes the kubeconfig to a new file in dir and returns its path.
func (a Access) Write(dir string) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{
		Server: a.Server, CertificateAuthorityData: a.CA, CertificateAuthority: a.CAFile,
		TLSServerName: a.TLSServerName, ProxyURL: a.ProxyURL,
	}
	config.AuthInfos["e2e"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: a.Identity.Cert, ClientKeyData: a.Identity.Key, Token: a.Token,
		TokenFile: a.TokenFile, ClientCertificate: a.CertFile, ClientKey: a.KeyFile,
	}
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "e2e"}
	config.CurrentContext = "e2e"
	dir, err := os.MkdirTemp(dir, "kubeconfig-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "config")
	return path, clientcmd.WriteToFile(*config, path)
}
