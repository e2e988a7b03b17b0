package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Authority is a certificate authority that is used for one control plane.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the certificate of the authority, with which clients check the server.
	PEM []byte
}

// Identity is a certificate with its key, both in PEM.
type Identity struct {
	Cert, Key []byte
}

// NewAuthority creates a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate(name, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour))
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key, PEM: encodePEM("CERTIFICATE", der)}, nil
}

// Serving issues a server certificate for these DNS names and for 127.0.0.1.
func (a *Authority) Serving(names ...string) (Identity, error) {
	return a.ServingAt(nil, names...)
}

// ServingAt issues a server certificate for these DNS names, for 127.0.0.1 and for these addresses.
func (a *Authority) ServingAt(addresses []net.IP, names ...string) (Identity, error) {
	template := certificateTemplate(names[0], time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour))
	template.DNSNames = names
	template.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.issue(template)
}

// Client issues a client certificate: the common name is the user, the organizations are its groups.
func (a *Authority) Client(user string, groups ...string) (Identity, error) {
	return a.ClientUntil(time.Now().Add(24*time.Hour), user, groups...)
}

// ClientUntil issues a client certificate that is valid until `end`, which may be in the past.
func (a *Authority) ClientUntil(end time.Time, user string, groups ...string) (Identity, error) {
	template := certificateTemplate(user, end.Add(-25*time.Hour), end)
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Identity{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Cert: encodePEM("CERTIFICATE", der), Key: keyPEM}, nil
}

// newSigningKey creates the key with which the control plane signs ServiceAccount tokens.
func newSigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return encodeKey(key)
}

func certificateTemplate(name string, start, end time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(fmt.Sprintf("the system has no random numbers: %v", err))
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    start,
		NotAfter:     end,
	}
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
