"""The ops of classical machine learning, ai.onnx.ml, that Ingot translates. Each is a row of
``OPS`` in a module here, and one line below.

In: nothing. Out: ``FILES``. Not done here: the table of all ops (``op_table``).
"""

FILES = {
    "ArrayFeatureExtractor": "features",
    "Binarizer": "features",
    "CategoryMapper": "labels",
    "FeatureVectorizer": "features",
    "Imputer": "features",
    "LabelEncoder": "label_encoder",
    "LinearClassifier": "linear_models",
    "LinearRegressor": "linear_models",
    "Normalizer": "features",
    "OneHotEncoder": "features",
    "SVMClassifier": "vector_machines",
    "SVMRegressor": "vector_machines",
    "Scaler": "features",
    "TreeEnsemble": "tree_ensembles",
    "TreeEnsembleClassifier": "tree_ensembles",
    "TreeEnsembleRegressor": "tree_ensembles",
    "ZipMap": "labels",
}
"""Op of ai.onnx.ml -> its module."""
