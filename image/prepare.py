"""Make what is otherwise made when it is first needed: the certificates, and the splitting proxy."""

from conformance.lab import pki, proxy
from conformance.model.setting import SPLITTER, Proxy

print(pki.ensure())
print(proxy.program(Proxy(program=SPLITTER)))
