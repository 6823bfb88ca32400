"""The spec of a ``ThunderAgentPool``: parsed from the file or the resource, and the CRD's schema made from it.

Rooms: ``spec`` defines the fields, ``rules`` what must hold between them; ``parse`` and ``file`` read, ``schema`` writes the
CRD; ``annotations`` and ``template`` look into what the spec only carries.
"""

from thunderagent.pool.file import load_pool
from thunderagent.pool.parse import parse_pool
from thunderagent.pool.schema import crd_schema
from thunderagent.pool.spec import API_VERSION, KIND, Pool

__all__ = ["API_VERSION", "KIND", "Pool", "crd_schema", "load_pool", "parse_pool"]
