"""stub"""
import json, os
class JsonFileStore:
    def __init__(self, path): self.path = os.fspath(path)
    def load(self):
        try:
            with open(self.path) as f: return json.load(f)
        except FileNotFoundError: return None
    def save(self, state, /):
        with open(self.path, "w") as f: json.dump(state, f)
