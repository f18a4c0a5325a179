"""A VirtualMachineInstance and the parts of its spec beside the domain (`core/v1/types.go`)."""

from __future__ import annotations

from kvnode.spec.model.notation import Types

INSTANCE: Types = {
    "VirtualMachineInstance": {
        "apiVersion": "string",
        "kind": "string",
        "metadata": "ObjectMeta",
        "spec": "VirtualMachineInstanceSpec!",
        "status": "VirtualMachineInstanceStatus",
    },
    "VirtualMachineInstanceSpec": {
        "priorityClassName": "string",
        "domain": "DomainSpec!",
        "nodeSelector": "{}string",
        "affinity": "Affinity",
        "schedulerName": "string",
        "serviceAccountName": "string",
        "tolerations": "[]Toleration",
        "topologySpreadConstraints": "[]TopologySpreadConstraint",
        "evictionStrategy": "string",
        "startStrategy": "string",
        "terminationGracePeriodSeconds": "int64",
        "volumes": "[]Volume",
        "livenessProbe": "Probe",
        "readinessProbe": "Probe",
        "hostname": "string",
        "subdomain": "string",
        "networks": "[]Network",
        "dnsPolicy": "DNSPolicy",
        "dnsConfig": "PodDNSConfig",
        "accessCredentials": "[]AccessCredential",
        "architecture": "string",
        "resourceClaims": "[]VirtualMachineInstanceResourceClaim",
        "utilityVolumes": "[]UtilityVolume",
    },
    "Probe": {
        "exec": "ExecAction",
        "guestAgentPing": "GuestAgentPing",
        "httpGet": "HTTPGetAction",
        "tcpSocket": "TCPSocketAction",
        "initialDelaySeconds": "int32",
        "timeoutSeconds": "int32",
        "periodSeconds": "int32",
        "successThreshold": "int32",
        "failureThreshold": "int32",
    },
    "GuestAgentPing": {},
    "AccessCredential": {
        "sshPublicKey": "SSHPublicKeyAccessCredential",
        "userPassword": "UserPasswordAccessCredential",
    },
    "SSHPublicKeyAccessCredential": {
        "source": "SSHPublicKeyAccessCredentialSource!",
        "propagationMethod": "SSHPublicKeyAccessCredentialPropagationMethod!",
    },
    "SSHPublicKeyAccessCredentialSource": {
        "secret": "AccessCredentialSecretSource",
    },
    "AccessCredentialSecretSource": {
        "secretName": "string!",
    },
    "SSHPublicKeyAccessCredentialPropagationMethod": {
        "configDrive": "ConfigDriveSSHPublicKeyAccessCredentialPropagation",
        "noCloud": "NoCloudSSHPublicKeyAccessCredentialPropagation",
        "qemuGuestAgent": "QemuGuestAgentSSHPublicKeyAccessCredentialPropagation",
    },
    "ConfigDriveSSHPublicKeyAccessCredentialPropagation": {},
    "NoCloudSSHPublicKeyAccessCredentialPropagation": {},
    "QemuGuestAgentSSHPublicKeyAccessCredentialPropagation": {
        "users": "[]string!",
    },
    "UserPasswordAccessCredential": {
        "source": "UserPasswordAccessCredentialSource!",
        "propagationMethod": "UserPasswordAccessCredentialPropagationMethod!",
    },
    "UserPasswordAccessCredentialSource": {
        "secret": "AccessCredentialSecretSource",
    },
    "UserPasswordAccessCredentialPropagationMethod": {
        "qemuGuestAgent": "QemuGuestAgentUserPasswordAccessCredentialPropagation",
    },
    "QemuGuestAgentUserPasswordAccessCredentialPropagation": {},
    "VirtualMachineInstanceResourceClaim": {
        "name": "string!",
        "resourceClaimName": "string",
        "resourceClaimTemplateName": "string",
    },
}
