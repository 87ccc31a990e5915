"""The ops of classical machine learning, ai.onnx.ml, that Ingot translates. One file per op and one
line here.

In: nothing. Out: ``FILES``. Not done here: the table of all ops (``op_table``).
"""

FILES = {
    "ArrayFeatureExtractor": "array_feature_extractor",
    "Binarizer": "binarizer",
    "CategoryMapper": "category_mapper",
    "FeatureVectorizer": "feature_vectorizer",
    "Imputer": "imputer",
    "LabelEncoder": "label_encoder",
    "LinearClassifier": "linear_classifier",
    "LinearRegressor": "linear_regressor",
    "Normalizer": "normalizer",
    "OneHotEncoder": "one_hot_encoder",
    "SVMClassifier": "svm_classifier",
    "SVMRegressor": "svm_regressor",
    "Scaler": "scaler",
    "TreeEnsemble": "tree_ensemble",
    "TreeEnsembleClassifier": "tree_ensemble_classifier",
    "TreeEnsembleRegressor": "tree_ensemble_regressor",
    "ZipMap": "zip_map",
}
"""Op of ai.onnx.ml -> its file."""
