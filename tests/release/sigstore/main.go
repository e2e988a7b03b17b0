// Verifies a signature as `cosign verify-blob --key` does: by the library that cosign uses.
//
//	verify-blob KEY SIGNATURE FILE
package main

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

func verify(key, sig, file string) error {
	pem, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return err
	}
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(sig)
	if err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return err
	}
	blob, err := os.Open(file)
	if err != nil {
		return err
	}
	defer blob.Close()
	return verifier.VerifySignature(bytes.NewReader(raw), blob)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: verify-blob KEY SIGNATURE FILE")
		os.Exit(2)
	}
	if err := verify(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "verify-blob:", err)
		os.Exit(1)
	}
}
